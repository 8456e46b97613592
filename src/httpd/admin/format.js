// Values of a foreign document, and numbers for people.

const LONGEST_SHOWN = 96;  // characters of a URL

export const num = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);
export const text = (value) => (typeof value === "string" ? value : "");
export const list = (value) =>
  Array.isArray(value) ? value.filter((one) => one && typeof one === "object") : [];
export const part = (value) => (value && typeof value === "object" ? value : {});

function scaled(value, step, units) {
  let at = 0;
  let left = Math.max(0, num(value));
  while (left >= step && at < units.length - 1) {
    left /= step;
    ++at;
  }
  const digits = at === 0 || left >= 100 ? 0 : left >= 10 ? 1 : 2;
  return `${left.toFixed(digits)} ${units[at]}`;
}
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const RATES = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
export const bytes = (value) => scaled(value, 1024, SIZES);
export const rate = (value) => scaled(value, 1000, RATES);

export function count(value) {
  const whole = Math.round(num(value));
  if (Math.abs(whole) >= 1e15) return whole.toExponential(1);
  return whole.toLocaleString("en-US").replaceAll(",", "\u202f");
}
export const percent = (share) => `${(100 * share).toFixed(share > 0.995 && share < 1 ? 2 : 1)} %`;

export function age(ms) {
  const seconds = Math.max(0, num(ms)) / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${count(hours / 24)} days`;
}

// The beginning and the end of a URL tell most.
export function shortened(full) {
  if (full.length <= LONGEST_SHOWN) return full;
  const head = Math.floor(LONGEST_SHOWN / 2) - 8;
  return `${full.slice(0, head)} … ${full.slice(head - LONGEST_SHOWN)}`;
}
