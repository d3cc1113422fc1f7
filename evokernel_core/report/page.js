"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const SHOWN_FIRST = 20;
const COLOURS = { verified: "var(--accent)", timed_only: "var(--muted)", failed: "var(--bad)", none: "var(--bad)" };
const RESULTS = { verified: "verified", timed_only: "timed only", failed: "failed", none: "no kernel" };
// Best to worst, as stacked away from zero.
const REACTIONS = [["survived", 1, "var(--best-good)"], ["accepted", 1, "var(--good)"], ["partially_accepted", 1, "var(--soft-good)"],
  ["reverted", -1, "var(--soft-bad)"], ["rejected", -1, "var(--bad)"]];
const STYLE = { fontFamily: "inherit", fontSize: "12.5px", color: "var(--ink)", background: "none" };
let evidence = data.evidences[0], all = false;

const times = (value) => value >= 100 ? `${Math.round(value)}×` : `${value.toFixed(2)}×`;
const micro = (value) => `${value >= 1000 ? Math.round(value).toLocaleString("en") : +value.toPrecision(4)} µs`;
const leading = (value) => Math.round(value / 10 ** Math.floor(Math.log10(value) + 1e-9));
const short = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;
// A text on lines of so many characters, broken behind what parts a name where that is possible.
const lines = (text, length) =>
  text.match(new RegExp(`.{1,${length}}$|.{1,${length - 1}}[ _.:/-]|.{1,${length}}`, "g")).map((line) => line.trim());
const source = () => data.measured.includes(evidence) ? "measured" : "estimated";

// Plot brings a style element that the page's policy would refuse; page.css has what it says.
function put(id, label, options) {
  const place = byId(id);
  if (!place) return;
  const svg = Plot.plot({ className: "plot", style: STYLE, width: Math.max(260, place.clientWidth), ...options });
  svg.querySelectorAll("style").forEach((element) => element.remove());
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  place.replaceChildren(svg);
}
function say(id, words) {
  const line = document.createElement("p");
  line.className = "muted";
  line.textContent = words;
  byId(id)?.replaceChildren(line);
}
const tip = { fill: "var(--panel)", stroke: "var(--line)", fontSize: 12.5, textPadding: 9 };

const mine = () => data.kernels.filter((kernel) => kernel.evidence === evidence);

function gain() {
  const sorted = mine().filter((kernel) => kernel.gain).sort((a, b) => b.gain - a.gain);
  const button = byId("gain-all");
  button.hidden = sorted.length <= SHOWN_FIRST;
  button.textContent = all ? `Show the first ${SHOWN_FIRST}` : `Show all ${sorted.length}`;
  button.setAttribute("aria-expanded", String(all));
  if (!sorted.length) return say("gain", "No kernel was verified yet.");
  const shown = all ? sorted : sorted.slice(0, SHOWN_FIRST);
  const wide = byId("gain").clientWidth;
  const whole = (kernel) => [kernel.name, kernel.where, kernel.shape].filter(Boolean).join("  ");
  const longest = Math.max(...shown.map((kernel) => whole(kernel).length)) * 6.6 + 16;
  const margin = Math.min(longest, wide * (wide < 600 ? 0.6 : 0.4)), letters = Math.floor((margin - 16) / 6.6);
  const label = new Map(shown.map((kernel) => [kernel.task, lines(whole(kernel), letters)]));
  const row = 11 + 14 * Math.max(...[...label.values()].map((parts) => parts.length));
  const bound = (kernel) => kernel.eager_us / kernel.bound_us, bounded = shown.filter((kernel) => kernel.bound_us > 0);
  put("gain", `Gain over eager of ${shown.length} kernels, ${evidence}; the table of kernels has the numbers.`, {
    marginLeft: margin, marginRight: 60, marginTop: 8, marginBottom: 40, height: shown.length * row + 52,
    x: { type: "log", label: `gain over eager, ${source()} (log scale) →`, grid: true, tickFormat: (d) => [1, 2, 5].includes(leading(d)) ? `${d}×` : "",
      domain: [Math.min(0.9, ...shown.map((kernel) => kernel.gain)), Math.max(1.5, ...shown.map((kernel) => kernel.gain), ...bounded.map(bound)) * 1.08] },
    y: { domain: shown.map((kernel) => kernel.task), label: null, tickFormat: (task) => label.get(task).join("\n"), tickSize: 0 },
    marks: [
      Plot.ruleX([1], { stroke: "var(--muted)", strokeDasharray: "3 3" }),
      Plot.barX(shown, { x1: 1, x2: "gain", y: "task", fill: (kernel) => kernel.gain >= 1 ? "var(--accent)" : "var(--bad)", insetTop: 4, insetBottom: 4, rx: 3 }),
      Plot.tickX(bounded, { x: bound, y: "task", stroke: "var(--ink)", strokeWidth: 2, insetTop: 3, insetBottom: 3 }),
      Plot.text(shown, { y: "task", text: (kernel) => times(kernel.gain), frameAnchor: "right", textAnchor: "start", dx: 6, fill: "var(--ink)" }),
      Plot.tip(shown, Plot.pointerY({ ...tip, x: "gain", y: "task",
        title: (kernel) => `${whole(kernel)} (${kernel.category})\n${times(kernel.gain)} as fast as eager\n${micro(kernel.best_us)} ${evidence}\neager ${micro(kernel.eager_us)}, roofline ${micro(kernel.bound_us)}` })),
    ],
  });
}

function curve() {
  const points = data.curves[evidence] ?? [], words = byId("curve-words");
  if (points.length < 2) {
    words.textContent = "";
    return say("curve", points.length ? "No attempt followed a verified kernel yet." : "No kernel was verified yet.");
  }
  const tasks = points[0].searching, last = points.at(-1);
  words.textContent = `Latency of a task's first verified kernel over the best one's so far: geometric mean of ${tasks} task${tasks > 1 ? "s" : ""}`
    + (tasks > 1 ? ", band: 95 % interval (bootstrap over tasks)." : ", so without an interval.");
  put("curve", `${words.textContent} After ${last.n} attempts ${last.mean.toFixed(2)} times, ${evidence}.`, {
    height: 300, marginBottom: 42, marginLeft: 48, marginTop: 24,
    x: { label: "attempts after the first verified kernel →", tickFormat: (d) => Number.isInteger(d) ? d : "", ticks: Math.min(points.length - 1, 8) },
    y: { label: `↑ times as fast, ${source()}`, grid: true, nice: true, domain: [1, Math.max(1.05, ...points.map((point) => point.high))], tickFormat: (d) => `${+d.toFixed(2)}×` },
    marks: [
      Plot.areaY(points, { x: "n", y1: "low", y2: "high", fill: "var(--accent)", fillOpacity: 0.18 }),
      Plot.lineY(points, { x: "n", y: "mean", stroke: "var(--accent)", strokeWidth: 2.5 }),
      Plot.dot(points, Plot.pointerX({ x: "n", y: "mean", r: 4, fill: "var(--accent)" })),
      Plot.tip(points, Plot.pointerX({ ...tip, x: "n", y: "mean",
        title: (point) => `after ${point.n} attempts\n${point.mean.toFixed(3)}× (${point.low.toFixed(3)} to ${point.high.toFixed(3)})\n${point.searching} of ${tasks} tasks had so many` })),
    ],
  });
}

function fillTasks() {
  const select = byId("task"), before = select.value;
  select.replaceChildren(...mine().map((kernel) => new Option(`${kernel.name} (${kernel.category})`, kernel.task)));
  if (mine().some((kernel) => kernel.task === before)) select.value = before;
  else {
    const longest = d3.greatest(mine(), (kernel) => new Set((data.tries[evidence][kernel.task] ?? []).map((one) => one.best_us)).size);
    if (longest) select.value = longest.task;
  }
}
function tries() {
  const points = data.tries[evidence]?.[byId("task").value] ?? [], task = mine().find((kernel) => kernel.task === byId("task").value);
  const timed = points.filter((point) => point.us), lost = points.filter((point) => !point.us);
  if (!timed.length) return say("tries", `None of ${points.length} attempts has a latency.`);
  const [low, high] = d3.extent(timed, (point) => point.us), top = high * 1.12;
  const lines = [["eager", task.eager_us], ["roofline", task.bound_us]].filter(([, us]) => us && us <= high * 3 && us >= low / 3);
  put("tries", `Latency over ${points.length} attempts on ${task.name}, ${evidence}; best ${task.best_us ? micro(task.best_us) : "none verified"}.`, {
    height: 300, marginLeft: 62, marginRight: 44, marginBottom: 42, marginTop: 24,
    x: { label: "attempt →", domain: [0.5, points.length + 0.5], tickFormat: (d) => Number.isInteger(d) ? d : "", ticks: Math.min(points.length, 8) },
    y: { type: "log", label: `↑ latency, µs, ${source()} (log scale)`, grid: true, ticks: 5, tickFormat: (d) => [1, 2, 3, 5, 7].includes(leading(d)) ? d.toLocaleString("en", { maximumSignificantDigits: 3 }) : "", domain: [Math.min(low, ...lines.map((line) => line[1])) * 0.94, Math.max(top, ...lines.map((line) => line[1] * 1.05))] },
    marks: [
      Plot.ruleY(lines, { y: "1", stroke: "var(--muted)", strokeDasharray: "4 3" }),
      Plot.text(lines, { y: "1", text: "0", frameAnchor: "right", textAnchor: "start", dx: 5, fill: "var(--muted)" }),
      Plot.lineY(points.filter((point) => point.best_us), { x: "n", y: "best_us", curve: "step-after", stroke: "var(--accent)", strokeWidth: 2 }),
      Plot.dot(timed, { x: "n", y: "us", r: 4, stroke: (point) => COLOURS[point.result], strokeWidth: 1.6,
        fill: (point) => point.result === "verified" ? COLOURS.verified : "var(--panel)" }),
      Plot.dot(lost, { x: "n", frameAnchor: "top", dy: 6, symbol: "times", r: 4.5, stroke: "var(--bad)", strokeWidth: 1.8 }),
      Plot.tip(points, Plot.pointerX({ ...tip, x: "n", y: (point) => point.us ?? top, maxRadius: 60,
        title: (point) => `attempt ${point.n}, ${point.stage}: ${RESULTS[point.result]}\n${point.us ? `${micro(point.us)} ${source()}\n` : ""}${short(point.what, 60)}` })),
    ],
  });
}

// Means of a tenth of the points each, in the order of belief, with the normal 95 % interval.
function binned(points, reward) {
  const sorted = d3.sort(points, (point) => point.believed), size = Math.max(8, Math.ceil(sorted.length / 10)), bins = [];
  for (let at = 0; at + size <= sorted.length; at += size) {
    const bin = sorted.slice(at, at + size), mean = d3.mean(bin, (point) => point[reward]);
    const half = 1.96 * (d3.deviation(bin, (point) => point[reward]) ?? 0) / Math.sqrt(bin.length);
    bins.push({ stage: bin[0].stage, believed: d3.mean(bin, (point) => point.believed), mean, low: Math.max(-1, mean - half), high: Math.min(1, mean + half), n: bin.length });
  }
  return bins;
}
function beliefs() {
  if (!byId("beliefs")) return;
  const reward = byId("reward").value, width = byId("beliefs").clientWidth, stages = d3.groups(data.beliefs, (point) => point.stage);
  const bins = stages.flatMap(([, points]) => binned(points, reward)), narrow = width < 560;
  put("beliefs", `Reward over believed value of ${data.beliefs.length} kernels.`, {
    height: narrow ? 260 * stages.length + 60 : 360, marginLeft: 48, marginBottom: 42, marginTop: 32, marginRight: narrow ? 54 : 20,
    x: { label: "believed value Q →", domain: [-1, 1], grid: true, ticks: 5 }, y: { label: "↑ reward", domain: [-1, 1], grid: true, ticks: 5 },
    fx: { label: null, tickFormat: (stage) => `${stage} stage`, padding: 0.08 }, fy: { label: null, padding: 0.12, tickFormat: (stage) => stage },
    marks: [
      Plot.line([[-1, -1], [1, 1]], { stroke: "var(--muted)", strokeDasharray: "4 3" }),
      Plot.ruleY([0], { stroke: "var(--line)" }),
      Plot.dot(data.beliefs, { x: "believed", y: reward, [narrow ? "fy" : "fx"]: "stage", r: 3, fill: "var(--accent)", fillOpacity: Math.max(0.12, Math.min(0.6, 60 / Math.sqrt(data.beliefs.length) / 4)) }),
      Plot.ruleX(bins, { x: "believed", y1: "low", y2: "high", [narrow ? "fy" : "fx"]: "stage", stroke: "var(--ink)", strokeWidth: 2 }),
      Plot.dot(bins, { x: "believed", y: "mean", [narrow ? "fy" : "fx"]: "stage", r: 4.5, fill: "var(--ink)", stroke: "var(--panel)" }),
      Plot.tip(data.beliefs, Plot.pointer({ ...tip, x: "believed", y: reward, [narrow ? "fy" : "fx"]: "stage", maxRadius: 20,
        title: (point) => `${point.task} (${point.category})\nbelieved ${point.believed.toFixed(3)}\nreward ${point.raw.toFixed(3)}, paid ${point.paid.toFixed(3)}` })),
    ],
  });
}

function reactions() {
  if (!byId("reactions")) return;
  const order = new Map(REACTIONS.map(([kind], place) => [kind, place])), sign = (reaction) => REACTIONS[order.get(reaction.kind)][1] * reaction.count;
  const categories = d3.groupSort(data.reactions, (items) => -d3.sum(items, (reaction) => reaction.count), (reaction) => reaction.category);
  const rows = d3.sort(data.reactions, (reaction) => Math.abs(order.get(reaction.kind) - 2));
  put("reactions", `What you did with kernels of ${categories.length} categories.`, {
    height: categories.length * 30 + 66, marginLeft: 110, marginBottom: 42, marginTop: 8,
    x: { label: "← rejected · times · accepted →", labelAnchor: "center", grid: true, tickFormat: (d) => Number.isInteger(d) ? Math.abs(d) : "" },
    y: { domain: categories, label: null, tickSize: 0 },
    marks: [
      Plot.barX(rows, Plot.stackX({ x: sign, y: "category", fill: (reaction) => REACTIONS[order.get(reaction.kind)][2], insetTop: 5, insetBottom: 5, order: null,
        title: (reaction) => `${reaction.category}: ${reaction.kind.replace("_", " ")} ${reaction.count}`, tip: { ...tip } })),
      Plot.ruleX([0], { stroke: "var(--ink)" }),
    ],
  });
}

function draw() {
  if (data.evidences.length) {
    for (const tag of document.querySelectorAll(".tag")) {
      tag.textContent = evidence;
      tag.className = `tag ${source()}`;
    }
    gain(); curve(); tries();
  }
  beliefs(); reactions();
}

function sortable(table) {
  const body = table.tBodies[0], headers = [...table.tHead.rows[0].cells];
  const key = (row, at) => {
    const cell = row.cells[at], text = cell.dataset.value;
    return text === undefined ? cell.textContent.trim().toLowerCase() : text === "" ? null : Number(text);
  };
  headers.forEach((header, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const first = header.classList.contains("number") ? "descending" : "ascending";
      const next = !header.hasAttribute("aria-sort") ? first : header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      // What has no number comes last either way.
      const rows = [...body.rows].map((row) => [key(row, at), row]);
      rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : a < b ? -sign : a > b ? sign : 0);
      body.append(...rows.map(([, row]) => row));
    });
  });
  if (body.rows.length <= 12) return;
  const filter = document.createElement("input");
  filter.type = "search";
  filter.className = "filter";
  filter.placeholder = `Filter ${body.rows.length} rows`;
  filter.setAttribute("aria-label", "Show only rows that contain these words");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of body.rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
  table.closest(".panel").querySelector(".bar").append(filter);
}

function themes() {
  const button = byId("theme"), names = { "": "as the system", light: "light", dark: "dark" }, order = ["", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("evokernel-theme") ?? ""; } catch { return ""; } };
  const show = (theme) => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    button.textContent = `Theme: ${names[theme]}`;
  };
  button.hidden = false;
  show(order.includes(stored()) ? stored() : "");
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length];
    try { localStorage.setItem("evokernel-theme", next); } catch { /* a page of a file may have no storage */ }
    show(next);
  });
}

themes();
document.querySelectorAll("table.sortable").forEach(sortable);
if (data.evidences.length) {
  const select = byId("evidence");
  select.append(...data.evidences.map((words) => new Option(words, words)));
  byId("evidence-label").hidden = data.evidences.length < 2;
  select.addEventListener("change", () => { evidence = select.value; fillTasks(); draw(); });
  byId("task").addEventListener("change", tries);
  byId("gain-all").addEventListener("click", () => { all = !all; gain(); });
  fillTasks();
}
byId("reward")?.addEventListener("change", beliefs);
draw();
let width = innerWidth, waiting = 0;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(draw);
});
})();
