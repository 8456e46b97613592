// The last minutes of a node's counters, and the lines drawn of them.

import { num, part } from "./format.js";
import { byId, make, makeSvg, setText } from "./elements.js";

const HISTORY_MS = 5 * 60 * 1000;
const RATIO_WINDOW_MS = 10000;  // block reads come in bursts
const GAP_MS = 7000;            // longer between two samples: no line is drawn across

export let samples = [];  // oldest first: when, uptime, and the counters as they were

export function remember(stats, at) {
  const reads = part(stats.reads);
  const moved = part(stats.bytes);
  const sample = {
    at,
    uptime: num(stats.uptime_ms),
    cacheReads: num(reads.cache),
    allReads: num(reads.cache) + num(reads.peer) + num(reads.origin),
    cache: num(moved.cache),
    peer: num(moved.peer),
    origin: num(moved.origin),
  };
  // Another process: its counters began anew.
  if (samples.length && sample.uptime < samples.at(-1).uptime) samples = [];
  samples.push(sample);
  while (samples[0].at < at - HISTORY_MS) samples.shift();
}

// Share of block reads that the cache answered in the time before sample i; null: there were none.
export function ratioAt(i) {
  let from = i;
  while (from > 0 && samples[from].at > samples[i].at - RATIO_WINDOW_MS) --from;
  return ratioBetween(from, i);
}
export function ratioBetween(from, to) {
  const all = samples[to].allReads - samples[from].allReads;
  return all > 0 ? (samples[to].cacheReads - samples[from].cacheReads) / all : null;
}
export function rateAt(i, name) {
  if (i === 0) return null;
  const seconds = (samples[i].at - samples[i - 1].at) / 1000;
  if (seconds <= 0) return null;
  return Math.max(0, samples[i][name] - samples[i - 1][name]) / seconds;
}

const WIDTH = 600;
const HEIGHT = 130;

export class Chart {
  // series: [{name, className, value(i) -> number or null, show(value)}]
  constructor(id, series, formatTop) {
    this.series = series;
    this.formatTop = formatTop;
    const plot = make("div", "plot");
    const scale = make("div", "y");
    this.top = make("span");
    scale.append(this.top, make("span", "", "0"));
    this.svg = makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none",
      "aria-hidden": "true" });
    for (const y of [0, HEIGHT / 2, HEIGHT]) {
      this.svg.append(makeSvg("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y }));
    }
    this.paths = series.map((one) => makeSvg("path", { class: `line ${one.className}` }));
    this.svg.append(...this.paths);
    const times = make("div", "x");
    times.append(make("span", "", "5 min ago"), make("span", "", "now"));
    plot.append(scale, this.svg, times);
    const legend = make("ul", "legend");
    this.values = series.map((one) => {
      const item = make("li");
      const value = make("b");
      item.append(make("span", `key ${one.className}`), make("span", "", one.name), value);
      legend.append(item);
      return value;
    });
    byId(id).append(legend, plot);
  }

  draw(highest) {
    const end = samples.at(-1).at;
    const columns = this.series.map((one) => samples.map((_, i) => one.value(i)));
    const top = highest || roundUp(Math.max(0, ...columns.flat()));
    setText(this.top, this.formatTop(top));
    columns.forEach((values, which) => {
      let path = "";
      let last = null;
      values.forEach((value, i) => {
        if (value === null) return;
        const x = WIDTH * (1 - (end - samples[i].at) / HISTORY_MS);
        const y = HEIGHT * (1 - Math.min(1, value / top));
        const joined = last !== null && samples[i].at - last < GAP_MS;
        path += `${joined ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
        last = samples[i].at;
      });
      this.paths[which].setAttribute("d", path);
      setText(this.values[which], this.series[which].show(values.at(-1)));
    });
  }
}

// The next of 1, 2, 5 times a power of ten.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e6)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) || value;
}
