"use strict";
// The best network under the limits that the knobs are at, found anew at every movement.
(() => {
  const holder = document.getElementById("fronts");
  if (!holder) return;
  const fronts = JSON.parse(holder.textContent);
  if (!fronts.length) return;
  const { of: optimum, costOf, isBinding, UNDECIDED } = exactOptimum;

  // ------------------------------------------------------------------ what a network is

  const compactOf = (front, network) =>
    network.map((blocks, s) => blocks.map((c) => front.stages[s].choices[c]).join(" ")).join(" | ");

  // Where the weights of a network stand among all: first the constant, then choices, then depths.
  function placesOf(front, network) {
    const places = [0];
    let first = 1;
    for (const [s, { values, choices }] of front.stages.entries()) {
      network[s].forEach((choice, b) => places.push(first + b * choices.length + choice));
      first += values.length * choices.length;
    }
    for (const [s, { depths }] of front.stages.entries()) {
      places.push(first + depths.indexOf(network[s].length));
      first += depths.length;
    }
    return places;
  }

  function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  }

  // The accuracy that is estimated for a network, and its error: one standard deviation.
  function estimateOf(front, network) {
    let logLoss = front.intercept;
    network.forEach((blocks, s) => {
      const { values, depths, depthValues } = front.stages[s];
      blocks.forEach((choice, b) => { logLoss -= values[b][choice]; });
      logLoss -= depthValues[depths.indexOf(blocks.length)];
    });
    front.matrix ??= unpacked(front.covariance);
    const size = (Math.sqrt(8 * front.matrix.length + 1) - 1) / 2;
    const places = placesOf(front, network);
    let variance = front.noise ** 2;
    for (const i of places) {
      for (const j of places) {
        const [row, column] = i < j ? [i, j] : [j, i];
        variance += front.matrix[row * size - (row * (row - 1)) / 2 + column - row];
      }
    }
    const { offset, slope, error } = front.line;
    const accuracy = 1 / (1 + Math.exp(-(offset + slope * logLoss)));
    const logit = Math.sqrt(slope ** 2 * Math.max(variance, 0) + error ** 2);
    return { accuracy, error: accuracy * (1 - accuracy) * logit };
  }

  // ------------------------------------------------------------------ words

  const inUnit = (amount, { factor }) => (amount / factor).toFixed(factor > 1 ? 3 : 0);
  const words = (amount, resource) => `${inUnit(amount, resource)} ${resource.suffix}`.trim();
  // What suffices when it is typed: rounded up.
  const enough = (amount, resource) =>
    words(resource.factor > 1 ? Math.ceil((1000 * amount) / resource.factor) * (resource.factor / 1000) : amount, resource);
  const points = (share) => `${(100 * share).toFixed(Math.abs(share) < 0.001 ? 2 : 1)}`;

  // The limits that leave no network, each with the least that it would have to be.
  function inTheWay(front, limits) {
    const found = [];
    for (const [k, resource] of front.resources.entries()) {
      if (!isBinding(resource, limits[k])) continue;
      const at = (amount) => limits.map((limit, i) => (i === k ? amount : limit));
      if (!resource.isPeak) {
        const network = optimum(front, at(null), k);
        if (network !== null) found.push([k, costOf(front, network, k)]);
        continue;
      }
      if (optimum(front, at(null)) === null) continue;
      const levels = [...new Set([resource.base, ...resource.costs.flat(2)])].sort((a, b) => a - b);
      let low = 0, high = levels.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (optimum(front, at(levels[middle])) === null) low = middle + 1;
        else high = middle;
      }
      found.push([k, levels[low]]);
    }
    return found;
  }

  function refusal(front, limits) {
    const ways = inTheWay(front, limits);
    const binding = front.resources.filter((resource, k) => isBinding(resource, limits[k]));
    if (!ways.length) {
      const names = binding.map((resource) => resource.label).join(", ");
      return `No network keeps these limits: ${names}. At least two of them have to be raised.`;
    }
    const raised = ways.map(([k, least]) => {
      const resource = front.resources[k];
      return `${resource.label} from ${words(limits[k], resource)} to at least ${enough(least, resource)}`;
    });
    const others = binding.length > 1 ? " while the others stay" : "";
    const how = raised.length > 1 ? "one of these is" : `the limit of ${front.resources[ways[0][0]].label} is`;
    return `No network keeps these limits; ${how} in the way${others}. Raise ${raised.join(", or ")}.`;
  }

  // Names the folder of a network's training: the same for the same network.
  function shortName(text) {
    let hash = 0x811c9dc5;
    for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193) >>> 0;
    return `network-${hash.toString(16).padStart(8, "0")}`;
  }
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const commandOf = ({ command }, compact) =>
    command.start + quoted(compact) + command.output + shortName(compact);

  // ------------------------------------------------------------------ the page

  const place = (name) => document.getElementById(`explore-${name}`);
  function make(tag, attributes = {}, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  }

  const STEPS = 1000; // of a knob; the last one is no limit
  let front = fronts[0], limits = [], knobs = [], stages = [], waiting = false;

  // By factors, as fronts are, from the cheapest network to the dearest.
  function amountAt(resource, step) {
    const { cheapest, dearest } = resource;
    if (step >= STEPS) return null;
    const share = step / STEPS;
    return Math.floor(
      cheapest > 0 ? cheapest * (dearest / cheapest) ** share : share * dearest,
    );
  }
  function stepOf(resource, amount) {
    const { cheapest, dearest } = resource;
    if (!isBinding(resource, amount)) return STEPS;
    if (amount <= cheapest) return 0;
    const share = cheapest > 0 ? Math.log(amount / cheapest) / Math.log(dearest / cheapest) : amount / dearest;
    return Math.min(STEPS - 1, Math.round(STEPS * share));
  }

  function start(number) {
    front = fronts[number];
    limits = front.resources.map(({ limit, dearest }) => (limit === null || limit >= dearest ? null : limit));
    // From the middle of the front, which keeps all the other limits.
    if (limits[0] === null) limits[0] = front.points[front.points.length >> 1][0];
    knobs = front.resources.map(knobOf);
    place("knobs").replaceChildren(...knobs.map((knob) => knob.box));
    stages = front.stages.map(stageOf);
    place("network").replaceChildren(...stages.map((stage) => stage.box));
    place("quality").textContent =
      `Learnt from ${front.scored} networks that were scored; each of them, predicted from all the ` +
      `others, is within two errors in ${(100 * front.within).toFixed(0)} % of cases, and in the ` +
      `right order by a rank correlation of ${front.rank.toFixed(2)}.`;
    draw();
  }

  function knobOf(resource, k) {
    const id = `explore-knob-${k}`;
    const title = make("label", { for: id }, resource.label);
    const range = make("input", { type: "range", id, min: 0, max: STEPS, step: 1 });
    const about = `limit of ${resource.label}${resource.suffix ? ` in ${resource.suffix}` : ""}`;
    const number = make("input", {
      type: "number", min: 0, step: "any", "aria-label": about, placeholder: "no limit",
    });
    const [fill, used, more] = [make("i"), make("b"), make("span")];
    const gauge = make("div", { class: "gauge", role: "img" }, fill);
    const box = make(
      "div", { class: "knob" },
      make("div", { class: "knob-head" }, title, make("span", { class: "amount" }, number, ` ${resource.suffix}`)),
      range, gauge,
      make("p", { class: "quiet" }, used, " ", more),
    );
    if (resource.on) title.title = resource.on;
    range.addEventListener("input", () => {
      limits[k] = amountAt(resource, Number(range.value));
      soon();
    });
    number.addEventListener("input", () => {
      const typed = number.value === "" ? NaN : Number(number.value);
      // 0.29 · 100 is a little less than 29 in binary.
      const amount = Math.floor(Number((typed * resource.factor).toPrecision(15)));
      limits[k] = Number.isFinite(amount) && amount < resource.dearest ? Math.max(0, amount) : null;
      soon();
    });
    number.addEventListener("change", () => { knobs[k].shown = undefined; soon(); });
    return { box, range, number, gauge, fill, used, more };
  }

  function stageOf(stage, s) {
    const deepest = stage.depths[stage.depths.length - 1];
    const parts = Array.from({ length: deepest }, (_, b) => {
      const [lines, cost] = [make("span", { class: "lines" }), make("em")];
      return { box: make("div", { class: "part" }, make("b", {}, `${s + 1}.${b + 1}`), lines, cost), lines, cost };
    });
    const box = make(
      "div", { class: "stage" },
      make("h4", {}, `stage ${s + 1}`), make("p", { class: "quiet" }, stage.note),
      make("div", { class: "parts" }, ...parts.map((part) => part.box)),
    );
    return { box, parts };
  }

  function soon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function draw() {
    let network = null, said = "";
    try {
      network = optimum(front, limits);
      if (network === null) said = refusal(front, limits);
    } catch (error) {
      if (error !== UNDECIDED) throw error;
      said = "These limits are too tight together to find the best network here.";
    }
    place("refusal").textContent = said;
    place("refusal").hidden = network !== null;
    place("answer").hidden = network === null;
    const estimate = network && estimateOf(front, network);
    knobs.forEach((knob, k) => drawKnob(knob, k, network, estimate));
    if (network === null) place("accuracy").textContent = "–";
    else {
      place("accuracy").textContent = `${points(estimate.accuracy)} % ± ${points(estimate.error)}`;
      drawNetwork(network);
      const compact = compactOf(front, network);
      place("compact").textContent = compact;
      place("command").textContent = commandOf(front, compact);
    }
    drawChart(network, estimate);
  }

  function drawKnob(knob, k, network, estimate) {
    const resource = front.resources[k], limit = limits[k];
    const binding = isBinding(resource, limit);
    knob.range.value = stepOf(resource, limit);
    knob.range.setAttribute("aria-valuetext", binding ? words(limit, resource) : "no limit");
    if (document.activeElement !== knob.number || knob.shown === undefined) {
      knob.number.value = binding ? Number(inUnit(limit, resource)) : "";
    }
    knob.shown = limit;
    if (network === null) {
      knob.fill.style.width = "0";
      knob.gauge.setAttribute("aria-label", "no network");
      knob.used.textContent = `${words(resource.cheapest, resource)} to ${words(resource.dearest, resource)}`;
      knob.more.textContent = "is what networks cost.";
      return;
    }
    const cost = costOf(front, network, k);
    const share = (100 * cost) / (binding ? limit : resource.dearest);
    knob.fill.style.width = `${share.toFixed(1)}%`;
    const of = binding ? "of the limit" : "of the dearest network";
    knob.gauge.setAttribute("aria-label", `${share.toFixed(0)} percent ${of}`);
    knob.used.textContent = words(cost, resource);
    knob.more.textContent = `is ${share.toFixed(1)} % ${of}. ${moreOf(k, binding, estimate)}`;
  }

  function moreOf(k, binding, estimate) {
    if (!binding) return "";
    const further = limits.map((limit, i) => (i === k ? Math.floor(1.05 * limit) : limit));
    try {
      const gain = estimateOf(front, optimum(front, further)).accuracy - estimate.accuracy;
      return gain < 5e-5 ? "5 % more would buy nothing." : `5 % more would buy ${points(gain)} points.`;
    } catch (error) {
      if (error !== UNDECIDED) throw error;
      return "";
    }
  }

  function drawNetwork(network) {
    const [resource] = front.resources;
    const costs = network.map((blocks, s) => blocks.map((choice, b) => resource.costs[s][b][choice]));
    const dearest = Math.max(...costs.flat(), 1);
    for (const [s, { parts }] of stages.entries()) {
      const { described } = front.stages[s];
      for (const [b, part] of parts.entries()) {
        const runs = b < network[s].length;
        part.box.classList.toggle("absent", !runs);
        const lines = runs ? described[Math.min(b, described.length - 1)][network[s][b]] : ["left out"];
        part.lines.textContent = lines.join("\n");
        part.cost.textContent = runs ? words(costs[s][b], resource) : "";
        part.box.style.setProperty("--part", runs ? (costs[s][b] / dearest).toFixed(3) : "0");
      }
    }
  }

  // ------------------------------------------------------------------ the front as a picture

  const SVG = "http://www.w3.org/2000/svg";
  function shape(tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function ticks(low, high, number) {
    const rough = (high - low) / number || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
    return { found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  function drawChart(network, estimate) {
    const chart = place("chart");
    const width = chart.clientWidth, height = chart.clientHeight;
    if (!width) return;
    const [resource] = front.resources;
    const here = network && [costOf(front, network, 0), estimate.accuracy, estimate.error];
    const all = here ? [...front.points, here] : front.points;
    const limit = isBinding(resource, limits[0]) ? limits[0] : null;
    const xs = [...all.map((point) => point[0]), ...(limit === null ? [] : [limit])];
    const pad = { left: 46, right: 12, top: 24, bottom: 40 };
    const range = (low, high, share) => [low - share * (high - low || 1), high + share * (high - low || 1)];
    const [left, right] = range(Math.min(...xs) / resource.factor, Math.max(...xs) / resource.factor, 0.04);
    const [low, high] = range(
      Math.min(...all.map(([, accuracy, error]) => 100 * (accuracy - error))),
      Math.max(...all.map(([, accuracy, error]) => 100 * (accuracy + error))), 0.06,
    );
    const x = (cost) => pad.left + ((cost / resource.factor - left) / (right - left)) * (width - pad.left - pad.right);
    const y = (share) => height - pad.bottom - ((100 * share - low) / (high - low)) * (height - pad.top - pad.bottom);
    const at = (cost, share) => `${x(cost).toFixed(1)},${y(share).toFixed(1)}`;
    const drawn = [];
    const bottom = height - pad.bottom;
    const across = ticks(left, right, width < 420 ? 3 : 5), up = ticks(low, high, 5);
    for (const tick of up.found) {
      const level = y(tick / 100);
      drawn.push(shape("path", { class: "grid-line", d: `M${pad.left},${level}H${width - pad.right}` }));
      drawn.push(shape("text", { x: pad.left - 6, y: level + 4, "text-anchor": "end" }, `${tick.toFixed(up.digits)}`));
    }
    for (const tick of across.found) {
      const level = x(tick * resource.factor);
      drawn.push(shape("path", { class: "grid-line", d: `M${level},${bottom}v4` }));
      drawn.push(shape("text", { x: level, y: bottom + 17, "text-anchor": "middle" }, tick.toFixed(across.digits)));
    }
    const unit = resource.suffix ? `${resource.label} [${resource.suffix}]` : resource.label;
    drawn.push(shape("text", { x: (pad.left + width - pad.right) / 2, y: height - 6, "text-anchor": "middle" }, unit));
    drawn.push(shape("text", { x: 2, y: 12 }, "accuracy [%]"));
    const upper = front.points.map(([cost, share, error]) => at(cost, share + error));
    const lower = front.points.map(([cost, share, error]) => at(cost, share - error)).reverse();
    drawn.push(shape("path", { class: "band", d: `M${[...upper, ...lower].join("L")}Z` }));
    drawn.push(shape("path", { class: "front", d: `M${front.points.map(([c, a]) => at(c, a)).join("L")}` }));
    for (const [cost, share, , scored] of front.points) {
      drawn.push(shape("circle", { class: scored ? "scored" : "dot", cx: x(cost), cy: y(share), r: scored ? 3 : 1.6 }));
    }
    if (limit !== null) {
      drawn.push(shape("path", { class: "limit", d: `M${x(limit)},${pad.top}V${bottom}` }));
    }
    if (here) {
      const [cost, share, error] = here;
      drawn.push(shape("path", { class: "here", d: `M${at(cost, share - error)}L${at(cost, share + error)}` }));
      drawn.push(shape("circle", { class: "here", cx: x(cost), cy: y(share), r: 6 }));
    }
    const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    picture.append(...drawn);
    chart.replaceChildren(picture);
    const said = here ? `; this network ${words(here[0], resource)} and ${points(here[1])} %` : "";
    chart.setAttribute("aria-label", `estimated accuracy against ${resource.label} along the front${said}`);
  }

  new ResizeObserver(() => soon()).observe(place("chart"));

  // ------------------------------------------------------------------ what else can be pressed

  place("copy").addEventListener("click", async () => {
    const command = place("command"), button = place("copy");
    try {
      await navigator.clipboard.writeText(command.textContent);
    } catch { // an older browser, or a page that may not
      const range = document.createRange();
      range.selectNodeContents(command);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  place("front").addEventListener("change", (event) => start(Number(event.target.value)));

  // For tests and benchmarks: limits in smallest units, in the order of resources; null is none.
  window.explore = {
    solve(asked) {
      const network = optimum(front, asked);
      return network && compactOf(front, network);
    },
    show(asked) {
      limits = [...asked];
      draw();
    },
  };
  start(0);
})();
