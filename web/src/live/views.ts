import type { View } from '../view';
import { capturesView } from './captures';
import { devicesView } from './devices';
import { fleetView } from './fleet';
import { healthView } from './health';
import { heatView } from './heat';
import { jobView } from './job';
import { networkView } from './network';
import { qualityView } from './quality';
import { rankView } from './rank';
import { reportView } from './report';
import { servingView } from './serving';
import { stagesView } from './stages';
import type { LiveStore } from './store';

/** In the order of the navigation; the first is what opens. */
export const liveViews: readonly View<LiveStore>[] = [
  jobView, stagesView, rankView, heatView, servingView, fleetView, devicesView, networkView, healthView, capturesView, reportView, qualityView,
];
