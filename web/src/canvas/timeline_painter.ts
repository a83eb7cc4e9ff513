import { duration } from '../numbers';
import { isEnd, paintArrows } from './arrows';
import { fitText, SMALL_FONT } from './drawing';
import { chooseLevel } from './lod';
import type { Palette } from './palette';
import { labelledLines, LEVEL_HEIGHT, RANK_HEIGHT, type Line } from './timeline_layout';
import { paintShares, paintSummary, paintTrack, TimelineInk } from './timeline_paint';
import { chosenEvent, DETAIL_FROM, MAP_HEIGHT, PIN_FROM, PIN_WIDTH, RULER, TOP, xOf, yOf, type Scene } from './timeline_scene';
import { tickText, timeTicks } from './window';

/** Paints the timeline; holds what the next frame needs again. */
export class TimelinePainter {
  private ink: { palette: Palette; ink: TimelineInk } | null = null;
  private map_image: { map: Uint8Array; tones: TimelineInk; canvas: HTMLCanvasElement } | null = null;
  private buffer: { canvas: HTMLCanvasElement; data: ImageData; pixels: Uint32Array } | null = null;

  paint(scene: Scene, draw: CanvasRenderingContext2D, palette: Palette, ratio: number): void {
    const { window, width, left, plot_width, plot_height, content, scroll, lines, pinned_count, pinned_height, first, detailed, open, cursor_track, tracksOf, frame, launches } = scene;
    if (this.ink?.palette !== palette) this.ink = { palette, ink: new TimelineInk(palette) };
    const tones = this.ink.ink;
    this.paintMap(scene, draw, palette, tones);
    this.paintRuler(scene, draw, palette);
    draw.save();
    draw.beginPath();
    draw.rect(0, TOP, width, plot_height);
    draw.clip();
    draw.fillStyle = palette.panel;
    draw.fillRect(left, TOP, plot_width, plot_height);
    // Without a device a rank's line says what its operators did for the job, which only the shares know.
    const single = (line: Line) => detailed && line.height >= DETAIL_FROM && (tracksOf(line.rank_index)?.some((track) => track.lane === 'device') ?? false);
    const image = this.paintAllShares(scene, tones, ratio, single);
    if (image) draw.drawImage(image, left, TOP, plot_width, plot_height);
    const here_at = lines.findIndex((line) => line.rank_index === scene.row && line.track === cursor_track);
    const labelled = labelledLines(lines, first, plot_height + scroll, here_at);
    for (let at = first; at < lines.length && yOf(scene, lines[at]!) < TOP + plot_height; ++at) this.paintLine(scene, draw, palette, tones, lines[at]!, at === here_at, labelled.has(at), single);
    if (pinned_count > 0) {
      // Over what is scrolled away below them.
      draw.fillStyle = palette.background;
      draw.fillRect(0, TOP, width, pinned_height);
      draw.fillStyle = palette.panel;
      draw.fillRect(left, TOP, plot_width, pinned_height);
      if (image) {
        const part = Math.round((pinned_height / plot_height) * image.height);
        draw.drawImage(image, 0, 0, image.width, part, left, TOP, plot_width, (part / image.height) * plot_height);
      }
      for (let at = 0; at < pinned_count; ++at) this.paintLine(scene, draw, palette, tones, lines[at]!, at === here_at, true, single);
      draw.fillStyle = palette.muted;
      draw.fillRect(0, TOP + pinned_height - 1, width, 1);
    }
    const chosen_event = chosenEvent(scene);
    draw.save();
    draw.beginPath();
    draw.rect(left, TOP, plot_width, plot_height);
    draw.clip();
    paintArrows({
      draw, palette, lines, open: new Set([...open, ...scene.pins.map((pin) => pin.rank_index)]), tracksOf, start_ns: window.start_ns, end_ns: window.end_ns, xOf: (time_ns) => xOf(scene, time_ns),
      // What is below the pinned lines is at their edge.
      yOf: (line) => (line.pinned ? yOf(scene, line) : Math.max(TOP + pinned_height, yOf(scene, line))),
      chosen: (end) => chosen_event !== null && isEnd(end, chosen_event.rank_index, chosen_event.start_ns, chosen_event.name),
    }, launches.length > 0 ? [...scene.arrows, ...launches] : scene.arrows);
    this.paintCollective(scene, draw, palette);
    draw.restore();
    this.paintSelected(scene, draw, palette);
    draw.restore();
    this.paintMarked(scene, draw, palette);
    if (content > plot_height) {
      const [all, seen] = [content - pinned_height, plot_height - pinned_height];
      draw.fillStyle = palette.line;
      draw.fillRect(width - 3, TOP + pinned_height + (scroll / all) * seen, 3, Math.max(12, (seen / all) * seen));
    }
    if (frame) {
      draw.fillStyle = palette.focus;
      draw.globalAlpha = 0.2;
      draw.fillRect(Math.min(...frame), TOP, Math.abs(frame[1] - frame[0]), plot_height);
      draw.globalAlpha = 1;
    }
  }

  /** The shares of all rank lines in view, pinned ones over the others; null without levels of detail. */
  private paintAllShares(scene: Scene, tones: TimelineInk, ratio: number, single: (line: Line) => boolean): HTMLCanvasElement | null {
    const { levels, bands, window, ns_per_pixel, plot_width, plot_height, scroll, lines, pinned_count, pinned_height, first, rank_height } = scene;
    // Very many low lines are as well seen from half as many buckets, and are drawn in half the time.
    const level = chooseLevel(levels, rank_height < DETAIL_FROM / 2 ? ns_per_pixel * 2 : ns_per_pixel);
    if (!level) return null;
    const scale = plot_width * plot_height * ratio * ratio > 1_500_000 ? 1 : ratio;
    const w = Math.max(1, Math.round(plot_width * scale));
    const h = Math.max(1, Math.round(plot_height * scale));
    let image = this.buffer;
    if (!image || image.canvas.width !== w || image.canvas.height !== h) {
      const canvas = document.createElement('canvas');
      canvas.width = w;
      canvas.height = h;
      const data = new ImageData(w, h);
      image = this.buffer = { canvas, data, pixels: new Uint32Array(data.data.buffer) };
    }
    image.pixels.fill(0);
    paintShares(image.pixels, w, h, scale, lines, first, scroll, level, window, bands, tones, (line) => !single(line));
    if (pinned_count > 0) {
      image.pixels.fill(0, 0, w * Math.round(pinned_height * scale));
      paintShares(image.pixels, w, h, scale, lines.slice(0, pinned_count), 0, 0, level, window, bands, tones, (line) => !single(line));
    }
    image.canvas.getContext('2d')!.putImageData(image.data, 0, 0);
    return image.canvas;
  }

  private paintLine(scene: Scene, draw: CanvasRenderingContext2D, palette: Palette, tones: TimelineInk, line: Line, here: boolean, labelled: boolean, single: (line: Line) => boolean): void {
    const { bands, window, width, left, plot_width, open, tracksOf, nameText } = scene;
    const y = yOf(scene, line);
    const tracks = tracksOf(line.rank_index);
    if (tracks && (line.kind === 'track' || single(line))) {
      const style = { draw, palette, ink: tones, window, left, width: plot_width, matches: scene.matches, nameText };
      draw.save();
      draw.beginPath();
      draw.rect(left, y, plot_width, line.height);
      draw.clip();
      if (line.kind === 'track') paintTrack(style, tracks[line.track]!, y);
      else paintSummary(style, tracks, bands, y, line.height);
      draw.restore();
    }
    if (line.height >= DETAIL_FROM) {
      draw.fillStyle = palette.grid;
      draw.fillRect(0, y + line.height - 0.5, width, 0.5);
    }
    if (here || (line.rank_index === scene.row && line.kind === 'rank')) {
      draw.fillStyle = here ? palette.select : 'transparent';
      draw.fillRect(0, y, left - 2, Math.max(2, line.height));
      draw.fillStyle = palette.focus;
      draw.fillRect(0, y, 3, Math.max(2, line.height));
    }
    if (!labelled) return;
    const middle = y + Math.min(line.height, line.kind === 'track' ? 20 : Infinity) / 2;
    const room = left - (line.height >= PIN_FROM ? PIN_WIDTH : 0);
    draw.font = SMALL_FONT;
    draw.textAlign = 'left';
    draw.fillStyle = line.kind === 'rank' ? palette.text : palette.muted;
    if (line.kind === 'rank') {
      const mark = scene.has_events ? (open.has(line.rank_index) ? '▾ ' : '▸ ') : '';
      draw.fillText(fitText(draw, mark + scene.rankLabel(line.rank_index), room - 12), 8, Math.max(TOP + 6, middle));
    } else if (tracks) {
      const alone = line.pinned && !scene.pins.some((pin) => pin.rank_index === line.rank_index && pin.track < 0);
      const text = tracks[line.track]!.label;
      draw.fillText(fitText(draw, alone ? `${scene.rankLabel(line.rank_index)}, ${text.replace(/^device \d+ (?=stream)/, '')}` : text, room - (alone ? 12 : 30)), alone ? 8 : 24, middle);
    }
    if (line.height >= PIN_FROM && (line.pinned || here)) this.paintPin(scene, draw, line.pinned ? palette.focus : palette.muted, middle);
  }

  /** A pin: its head filled where the line is pinned. */
  private paintPin(scene: Scene, draw: CanvasRenderingContext2D, color: string, y: number): void {
    const { left } = scene;
    const x = left - PIN_WIDTH / 2 - 2;
    draw.fillStyle = color;
    draw.fillRect(x - 4, y - 5, 8, 2);
    draw.fillRect(x - 2.5, y - 3, 5, 4);
    draw.fillRect(x - 4, y + 1, 8, 1.5);
    draw.fillRect(x - 0.75, y + 2.5, 1.5, 4);
  }

  private paintMap(scene: Scene, draw: CanvasRenderingContext2D, palette: Palette, tones: TimelineInk): void {
    const { bands, map, span_ns, window, left, plot_width } = scene;
    draw.fillStyle = palette.panel;
    draw.fillRect(left, 0, plot_width, MAP_HEIGHT);
    if (this.map_image?.map !== map || this.map_image.tones !== tones) {
      const canvas = document.createElement('canvas');
      canvas.width = plot_width;
      canvas.height = MAP_HEIGHT;
      const data = new ImageData(plot_width, MAP_HEIGHT);
      const pixels = new Uint32Array(data.data.buffer);
      bands.forEach((band, k) => {
        const end = Math.round(band.to * (MAP_HEIGHT - 4)) + 2;
        for (let y = Math.round(band.from * (MAP_HEIGHT - 4)) + 2; y < end; ++y) {
          for (let x = 0; x < plot_width; ++x) pixels[y * plot_width + x] = tones.shares[k]![map[x * 4 + k] ?? 0]!;
        }
      });
      canvas.getContext('2d')!.putImageData(data, 0, 0);
      this.map_image = { map, tones, canvas };
    }
    draw.imageSmoothingEnabled = false;
    draw.drawImage(this.map_image.canvas, left, 0);
    const from = left + (window.start_ns / span_ns) * plot_width;
    const to = left + (window.end_ns / span_ns) * plot_width;
    draw.fillStyle = palette.background;
    draw.globalAlpha = 0.6;
    draw.fillRect(left, 0, from - left, MAP_HEIGHT);
    draw.fillRect(to, 0, left + plot_width - to, MAP_HEIGHT);
    draw.globalAlpha = 1;
    draw.strokeStyle = palette.focus;
    draw.lineWidth = 1.5;
    draw.strokeRect(from, 0.75, Math.max(2, to - from), MAP_HEIGHT - 1.5);
    draw.font = SMALL_FONT;
    draw.fillStyle = palette.muted;
    draw.textAlign = 'left';
    draw.fillText('whole run', 8, MAP_HEIGHT / 2);
  }

  private paintRuler(scene: Scene, draw: CanvasRenderingContext2D, palette: Palette): void {
    const { span_ns, window, width, plot_width } = scene;
    const ticks = timeTicks(window, plot_width);
    draw.font = SMALL_FONT;
    draw.textAlign = 'left';
    draw.fillStyle = palette.muted;
    draw.fillText(`${duration(window.end_ns - window.start_ns)} in view`, 8, MAP_HEIGHT + RULER / 2 + 2);
    for (const value of ticks.values) {
      const x = xOf(scene, value);
      draw.fillStyle = palette.line;
      draw.fillRect(x, MAP_HEIGHT + 4, 1, RULER - 4);
      draw.fillStyle = palette.muted;
      const text = tickText(value, ticks.step_ns, span_ns);
      if (x + 4 + text.length * 6.2 < width) draw.fillText(text, x + 4, MAP_HEIGHT + RULER / 2 + 2);
    }
  }

  /** On each member's line how long it waited, and an arrow from the last to arrive, which lets all go on. */
  private paintCollective(scene: Scene, draw: CanvasRenderingContext2D, palette: Palette): void {
    const { lines, pinned_height } = scene;
    if (!scene.collective) return;
    const { instance, members } = scene.collective;
    const by_rank = new Map(lines.filter((line) => line.kind === 'rank').map((line) => [line.rank_index, line]));
    const middle_of = (line: Line) => (line.pinned ? yOf(scene, line) : Math.max(TOP + pinned_height, yOf(scene, line))) + Math.min(line.height, RANK_HEIGHT) / 2;
    const x = xOf(scene, instance.last_arrival_ns);
    draw.save();
    draw.strokeStyle = draw.fillStyle = palette.focus;
    const rows: number[] = [];
    for (const member of members) {
      const line = by_rank.get(member.rank_index);
      if (!line) continue;
      const y = middle_of(line);
      rows.push(y);
      draw.lineWidth = 2;
      draw.beginPath();
      draw.moveTo(xOf(scene, member.arrival_ns), y);
      draw.lineTo(x, y);
      draw.stroke();
      draw.beginPath();
      draw.arc(xOf(scene, member.arrival_ns), y, member.rank_index === instance.last_rank_index ? 4.5 : 2.5, 0, 2 * Math.PI);
      draw.fill();
    }
    const last = instance.last_rank_index === null ? undefined : by_rank.get(instance.last_rank_index);
    draw.lineWidth = 1.5;
    for (const y of last ? [Math.min(...rows), Math.max(...rows)] : []) {
      const from = middle_of(last!);
      if (y === from) continue;
      const side = y > from ? -1 : 1;
      draw.beginPath();
      draw.moveTo(x, from);
      draw.lineTo(x, y);
      draw.moveTo(x - 4, y + side * 7);
      draw.lineTo(x, y);
      draw.lineTo(x + 4, y + side * 7);
      draw.stroke();
    }
    draw.restore();
  }

  /** Its edges run through all lines; its length stands on the ruler, where it is dragged. */
  private paintMarked(scene: Scene, draw: CanvasRenderingContext2D, palette: Palette): void {
    const { window, left, plot_width, plot_height } = scene;
    const span = scene.marked;
    if (!span) return;
    const from = Math.max(left, Math.min(left + plot_width, xOf(scene, span.start_ns)));
    const to = Math.max(left, Math.min(left + plot_width, xOf(scene, span.end_ns)));
    draw.fillStyle = palette.focus;
    draw.globalAlpha = 0.12;
    draw.fillRect(from, TOP, to - from, plot_height);
    draw.globalAlpha = 1;
    draw.fillRect(from, MAP_HEIGHT + RULER, Math.max(1, to - from), 3);
    for (const [x, time] of [[from, span.start_ns], [to, span.end_ns]] as const) {
      if (time >= window.start_ns && time <= window.end_ns) draw.fillRect(x - 0.5, MAP_HEIGHT + 4, 1.5, RULER + plot_height);
    }
    const text = duration(span.end_ns - span.start_ns);
    draw.font = SMALL_FONT;
    const wide = draw.measureText(text).width + 10;
    if (span.end_ns < window.start_ns || span.start_ns > window.end_ns) return;
    const middle = Math.max(left + wide / 2, Math.min(left + plot_width - wide / 2, (from + to) / 2));
    draw.fillStyle = palette.background;
    draw.fillRect(middle - wide / 2, MAP_HEIGHT + 4, wide, RULER - 5);
    draw.fillStyle = palette.focus;
    draw.textAlign = 'center';
    draw.fillText(text, middle, MAP_HEIGHT + RULER / 2 + 2);
  }

  private paintSelected(scene: Scene, draw: CanvasRenderingContext2D, palette: Palette): void {
    const { width, left, plot_width, plot_height, lines, pinned_height, tracksOf } = scene;
    const chosen = scene.selected;
    const track = chosen && tracksOf(chosen.rank_index)?.[chosen.track];
    if (!chosen || !track) return;
    const lineOf = (at: number) => lines.find((each) => each.rank_index === chosen.rank_index && each.track === at);
    const line = lineOf(chosen.track) ?? lineOf(-1);
    if (!line) return;
    const from = Math.max(left - 4, xOf(scene, track.start_ns[chosen.event]!));
    const to = Math.min(width + 4, xOf(scene, track.start_ns[chosen.event]! + track.duration_ns[chosen.event]!));
    const y = yOf(scene, line) + (line.kind === 'track' ? 2 + Math.min(track.level[chosen.event]!, track.level_count - 1) * LEVEL_HEIGHT : 1);
    draw.save();
    draw.beginPath();
    const above = line.pinned ? 0 : pinned_height;
    draw.rect(left - 2, TOP + above, plot_width + 4, plot_height - above);
    draw.clip();
    draw.strokeStyle = palette.text;
    draw.lineWidth = 2;
    draw.strokeRect(from, y, Math.max(3, to - from), line.kind === 'track' ? LEVEL_HEIGHT - 1 : line.height - 2);
    draw.restore();
  }
}
