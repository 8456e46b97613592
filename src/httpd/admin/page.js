// The operator's page: asks for stats every two seconds while somebody looks, and shows them.

import { age, bytes, count, list, num, part, percent, rate, shortened, text } from "./format.js";
import { byId, make, makeSvg, number, plain, setText, showFacts, showRows, wide }
  from "./elements.js";
import { Chart, rateAt, ratioAt, ratioBetween, remember, samples } from "./charts.js";

const PERIOD_MS = 2000;
const MAX_WAIT_MS = 30000;
const TIMEOUT_MS = 10000;
const STUCK_MS = 10000;
const LONG_MS = 60000;

const orDash = (format) => (value) => (value === null ? "–" : format(value));
const hitChart = new Chart("hit-chart",
  [{ name: "last 10 s", className: "c-cache", value: ratioAt, show: orDash(percent) }],
  () => "100 %");
const bytesChart = new Chart("bytes-chart",
  [["from cache", "cache"], ["from peers", "peer"], ["from origins", "origin"]].map(
    ([name, key]) => ({ name, className: `c-${key}`, value: (i) => rateAt(i, key),
      show: orDash(rate) })),
  rate);

function showHead(stats) {
  setText(byId("self"), text(stats.self_id));
  const pid = num(stats.pid) ? `, process ${num(stats.pid)}` : "";
  const version = text(stats.version) || "unknown";
  setText(byId("about"), `version ${version}, up ${age(stats.uptime_ms)}${pid}`);
  document.title = text(stats.self_id) ? `dartfs ${text(stats.self_id)}` : "dartfs";
}

function showNow(stats, stuck) {
  const last = samples.length - 1;
  const ratio = ratioBetween(0, last);
  const inflight = part(stats.inflight);
  const flights = Math.max(num(stats.flights_under_way), list(stats.flights).length);
  showFacts(byId("tiles"), [
    ["of block reads from the cache", ratio === null ? "–" : percent(ratio)],
    ["from the cache", orDash(rate)(rateAt(last, "cache"))],
    ["from origins", orDash(rate)(rateAt(last, "origin"))],
    [stuck ? `flights, ${count(stuck)} stuck` : "flights", count(flights), stuck > 0],
    [`of ${bytes(inflight.limit_bytes)} in flight`, bytes(inflight.bytes)],
    ["HTTP connections", count(part(stats.http).connections)],
  ]);
}

function showFill(cache) {
  const limit = num(cache.limit_bytes);
  const owned = num(cache.owned_bytes);
  const borrowed = num(cache.borrowed_bytes);
  const free = Math.max(0, limit - owned - borrowed);
  const whole = Math.max(limit, owned + borrowed, 1);
  const at = (value) => (1000 * value) / whole;
  const svg = byId("fill");
  while (svg.children.length > 1) svg.lastChild.remove();
  svg.append(
    makeSvg("rect", { class: "c-cache", x: 0, y: 0, width: at(owned), height: 28 }),
    makeSvg("rect", { class: "c-peer", x: at(owned), y: 0, width: at(borrowed), height: 28 }));
  const share = num(cache.owned_limit_bytes);
  if (share > 0 && share < whole) {
    svg.append(makeSvg("line", { class: "share", x1: at(share), x2: at(share), y1: 0, y2: 28 }));
  }
  const used = limit ? ` (${percent((owned + borrowed) / limit)} full)` : "";
  setText(byId("fill-title"), `${bytes(owned + borrowed)} of ${bytes(limit)}${used}`);
  const legend = byId("fill-legend");
  const items = [["c-cache", "owned", bytes(owned)], ["c-peer", "borrowed", bytes(borrowed)],
    ["c-free", `free of ${bytes(limit)}`, bytes(free)]];
  if (share > 0) items.push(["mark", "guaranteed to owned", bytes(share)]);
  legend.replaceChildren(...items.map(([className, name, value]) => {
    const item = make("li");
    item.append(make("span", `key ${className}`), make("span", "", name), make("b", "", value));
    return item;
  }));
}

function showCache(stats) {
  const cache = part(stats.cache);
  showFill(cache);
  const corrupt = num(cache.corrupt_granules);
  const failed = num(cache.write_errors);
  showFacts(byId("cache-facts"), [
    ["objects", count(cache.objects)],
    ["blocks", count(cache.blocks)],
    ["pinned", bytes(cache.pinned_bytes)],
    ["read by the kernel itself", bytes(cache.lent_bytes)],
    ["not yet durable", `${count(cache.pending_blocks)} blocks`],
    ["evicted", `${count(cache.evicted_blocks)} blocks`],
    ["damaged granules", count(corrupt), corrupt > 0],
    ["refused writes", count(failed), failed > 0],
    ["disk I/O", text(cache.disk_io) || "–"],
    ["directory", shortened(text(cache.dir)) || "–"],
  ]);
  const bypass = byId("bypass");
  bypass.hidden = cache.bypass !== true;
  if (!bypass.hidden) {
    const reason = text(cache.bypass_reason) || "the disk refuses writes";
    setText(bypass, `The cache keeps nothing new at present: ${reason}. Reads go on.`);
  }
}

let progress = new Map();  // flight -> {received, since}

// For how long the flight has got nothing, as far as this page has seen.
function stillFor(flight, key, now, kept) {
  const received = num(flight.received_bytes);
  const before = progress.get(key);
  let since = received > 0 ? now : now - num(flight.age_ms);
  if (before && before.received === received) since = before.since;
  kept.set(key, { received, since });
  return now - since;
}

function showFlights(stats, now) {
  const kept = new Map();
  let stuck = 0;
  const flights = list(stats.flights).slice().sort((a, b) => num(b.age_ms) - num(a.age_ms));
  const rows = flights.map((flight) => {
    const key = `${num(flight.block)} ${text(flight.url)}`;
    const still = stillFor(flight, key, now, kept);
    const old = num(flight.age_ms);
    const bad = still >= STUCK_MS || old >= LONG_MS;
    if (bad) ++stuck;
    const length = num(flight.length_bytes);
    const done = length ? `${Math.floor((100 * num(flight.received_bytes)) / length)} %` : "–";
    return {
      className: bad ? "bad" : "",
      cells: [wide(text(flight.url)),
        { value: bad ? `stuck, ${age(old)}` : age(old), className: "n mark" },
        number(`${done} of ${bytes(length)}`), number(count(flight.block)),
        plain(text(flight.source)),
        number(count(flight.waiters)), plain(text(flight.priority)), number(count(flight.attempt))],
    };
  });
  progress = kept;
  showRows("flights", rows, stats.flights_under_way);
  return stuck;
}

function stateOf(origin) {
  if (num(origin.throttled_ms) > 0) {
    return { value: `throttles us, ${age(origin.throttled_ms)} left`, className: "warn" };
  }
  const recent = num(origin.last_error_age_ms) >= 0 && num(origin.last_error_age_ms) < LONG_MS;
  if (text(origin.last_error) && recent) return { value: "failed lately", className: "warn" };
  if (num(origin.active) > 0) return { value: "active", className: "good" };
  return plain("idle");
}

function showOrigins(stats) {
  const origins = list(stats.origins).slice()
    .sort((a, b) => num(b.active) + num(b.queued) - num(a.active) - num(a.queued) ||
      num(b.bytes) - num(a.bytes));
  showRows("origins", origins.map((origin) => {
    const error = text(origin.last_error);
    const when = error ? ` (${age(origin.last_error_age_ms)} ago)` : "";
    return {
      cells: [wide(text(origin.authority)), stateOf(origin), number(count(origin.active)),
        number(count(origin.queued)), number(bytes(origin.bytes)), number(count(origin.calls)),
        { value: count(origin.failures), className: num(origin.failures) ? "n bad" : "n" },
        error ? wide(error + when) : plain("–")],
    };
  }));
}

function showMounts(stats) {
  showRows("mounts", list(stats.mounts).map((mount) => {
    const passthrough = part(mount.passthrough);
    const files = num(passthrough.files);
    return {
      cells: [wide(text(mount.mountpoint)), wide(text(mount.source)), number(age(mount.age_ms)),
        number(count(mount.open_files)), number(count(mount.waiting)),
        plain((text(passthrough.state) || "–") + (files ? `, ${count(files)} files` : ""))],
    };
  }));
}

const PLANES = [["client", "local programs"], ["peer", "other nodes"], ["admin", "the operator"],
  ["none", "nobody (refused)"]];

function showHttp(stats) {
  const http = part(stats.http);
  const refused = num(http.refused);
  const cut = num(http.cut_off);
  showFacts(byId("http-facts"), [
    ["connections", count(http.connections)],
    ["accepted", count(http.accepted)],
    ["refused", count(refused), refused > 0],
    ["answers cut off", count(cut)],
  ]);
  const planes = part(http.planes);
  const rows = PLANES.map(([key, name]) => [name, part(planes[key])])
    .filter(([, plane]) => Object.values(part(plane.answers)).some((value) => num(value) > 0))
    .map(([name, plane]) => {
      const answers = part(plane.answers);
      const failed = num(answers["5xx"]);
      return { cells: [plain(name), number(count(answers["2xx"])), number(count(answers["3xx"])),
        number(count(answers["4xx"])), { value: count(failed), className: failed ? "n bad" : "n" },
        number(bytes(plane.sent_bytes))] };
    });
  showRows("planes", rows);
}

function show(stats) {
  const now = performance.now();
  remember(stats, now);
  showHead(stats);
  const stuck = showFlights(stats, now);
  showNow(stats, stuck);
  showCache(stats);
  hitChart.draw(1);
  bytesChart.draw();
  showOrigins(stats);
  showMounts(stats);
  showHttp(stats);
}

// ---- polling --------------------------------------------------------------------------------

let timer = 0;
let asking = false;
let failures = 0;
let lastGood = performance.now();

function showState(className, value) {
  const state = byId("state");
  state.className = `state ${className}`;
  setText(state, value);  // says something only when it changes: it is read aloud
}

async function ask() {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const answer = await fetch("stats", { cache: "no-store", signal }).catch((error) => {
    const late = error.name === "TimeoutError";
    throw new Error(late ? "no answer in time" : "the node can't be reached");
  });
  if (!answer.ok) throw new Error(`the node answered ${answer.status}`);
  const stats = await answer.json();
  if (!stats || typeof stats !== "object") throw new Error("the answer is no object");
  return stats;
}

async function poll() {
  if (asking || document.hidden) return;
  asking = true;
  clearTimeout(timer);
  let wait = PERIOD_MS;
  try {
    const stats = await ask();
    failures = 0;
    lastGood = performance.now();
    show(stats);
    showState("live", "live, every 2 s");
  } catch (error) {
    ++failures;
    wait = Math.min(MAX_WAIT_MS, PERIOD_MS * 2 ** Math.min(failures, 10));
    const old = samples.length ? `; what is shown is ${age(performance.now() - lastGood)} old` : "";
    showState("lost", `${error.message}, next try in ${wait / 1000} s${old}`);
  }
  asking = false;
  timer = setTimeout(poll, wait);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    poll();
    return;
  }
  clearTimeout(timer);
  if (!asking) showState("", "paused while hidden");
});

poll();
