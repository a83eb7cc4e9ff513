let count = 0;

/**
 * Something begins that shows later without being asked again, such as unpacking events or an address that is written when a
 * wheel has come to rest. Returns what to call when it has ended; calling that again does nothing. `<html data-pending="2">`
 * says how many there are, for whoever waits until the page shows all it is going to show; absent when there is none.
 */
export function begin(): () => void {
  let open = true;
  const show = () => {
    if (count > 0) document.documentElement.dataset['pending'] = String(count);
    else delete document.documentElement.dataset['pending'];
  };
  ++count;
  show();
  return () => {
    if (!open) return;
    open = false;
    --count;
    show();
  };
}
