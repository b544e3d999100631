"use strict";
// The best network under any limits: `exactOptimum.of(front, limits)`.
//
// What is solved is the problem of `search/optimum.py`, in the same way: multipliers λ of nearly
// the least bound by the ellipsoid method, then all partial networks that give up at most ε of
// that bound, with ε made wider until the best of them is proved. Costs are whole numbers below
// 2⁵³, which are exact here too, and are never compared with a tolerance.
const exactOptimum = (() => {
  // ------------------------------------------------------------------ the problem

  const ROUNDS = [0, 50, 120, 180, 240]; // of the ellipsoid method, by the number of limits
  const EXCHANGES = 8; // blocks that may take their next best choice, for each limit: the first ε
  const LEAST_SHARE = 1e-12; // of the spread of values: the least ε
  const WIDER = 3;
  const MOST_STATES = 2 ** 18;
  const UNDECIDED = new Error("the limits are too tight together to tell");

  const isBinding = (resource, limit) => limit !== null && limit < resource.dearest;

  // What may be picked within the limits, or null where even the cheapest of everything is too
  // much. Of a sum the limits of networks count; a limit on a peak forbids choices.
  function problemOf(front, limits, minimised) {
    const { resources } = front;
    const peaks = [], sums = [];
    for (const [k, resource] of resources.entries()) {
      if (!isBinding(resource, limits[k])) continue;
      if (!resource.isPeak) sums.push(k);
      else if (resource.base > limits[k]) return null;
      else peaks.push(k);
    }
    const left = sums.map((k) => limits[k] - resources[k].base);
    const cheapest = sums.map(() => 0);
    let spread = 0;
    const stages = [];
    for (const [s, stage] of front.stages.entries()) {
      const deepest = stage.depths[stage.depths.length - 1];
      const allowed = (b, c) => peaks.every((k) => resources[k].costs[s][b][c] <= limits[k]);
      const worth = (b, c) =>
        minimised === null ? stage.values[b][c] : -resources[minimised].costs[s][b][c];
      const blocks = [];
      for (let b = 0; b < deepest; b++) {
        const picks = [];
        for (let c = 0; c < stage.choices.length; c++) {
          if (!allowed(b, c)) continue;
          const costs = sums.map((k) => resources[k].costs[s][b][c]);
          picks.push({ choice: c, value: worth(b, c), costs });
        }
        if (!picks.length) break;
        blocks.push(blockOf(picks, sums.length));
        spread += Math.max(...picks.map((pick) => Math.abs(pick.value)));
      }
      const depths = new Float64Array(blocks.length).fill(-Infinity);
      for (const [i, depth] of stage.depths.entries()) {
        if (depth <= blocks.length) depths[depth - 1] = minimised === null ? stage.depthValues[i] : 0;
      }
      const reached = [...depths].filter(Number.isFinite);
      if (!reached.length) return null;
      spread += Math.max(...reached.map(Math.abs));
      const least = sums.map((_, k) => leastCost(blocks, depths, k));
      least.forEach((cost, k) => { cheapest[k] += cost; });
      stages.push({ blocks, depths, least });
    }
    if (left.some((room, k) => cheapest[k] > room)) return null;
    return { stages, left, cheapest, spread: 2 * spread || 1, sums };
  }

  // The choices of a block without those that another matches in value and in every cost.
  function blockOf(picks, number) {
    const beats = (a, b) => a.value >= b.value && a.costs.every((cost, k) => cost <= b.costs[k]);
    const kept = picks.filter(
      (pick, i) =>
        !picks.some((other, j) => j !== i && beats(other, pick) && (j < i || !beats(pick, other))),
    );
    return {
      choices: kept.map((pick) => pick.choice),
      values: Float64Array.from(kept, (pick) => pick.value),
      costs: Array.from({ length: number }, (_, k) => Float64Array.from(kept, (p) => p.costs[k])),
    };
  }

  function leastCost(blocks, depths, k) {
    let total = 0, least = Infinity;
    for (const [b, block] of blocks.entries()) {
      total += Math.min(...block.costs[k]);
      if (depths[b] > -Infinity) least = Math.min(least, total);
    }
    return least;
  }

  // ------------------------------------------------------------------ multipliers

  // The bound L(λ) = max v − λ·t + λ·T; `slack` becomes what its network leaves of the limits.
  function boundAt({ stages, left }, weights, slack) {
    const number = left.length;
    const spent = new Float64Array(number), best = new Float64Array(number);
    let total = 0;
    for (let k = 0; k < number; k++) {
      total += weights[k] * left[k];
      slack[k] = left[k];
    }
    let value = 0; // of the network itself
    for (const { blocks, depths } of stages) {
      let running = 0, worth = 0, most = -Infinity, mostWorth = 0;
      spent.fill(0);
      for (let b = 0; b < blocks.length; b++) {
        const { values, costs } = blocks[b];
        let top = -Infinity, at = 0;
        for (let c = 0; c < values.length; c++) {
          let score = values[c];
          for (let k = 0; k < number; k++) score -= weights[k] * costs[k][c];
          if (score > top) { top = score; at = c; }
        }
        running += top;
        worth += values[at];
        for (let k = 0; k < number; k++) spent[k] += costs[k][at];
        if (running + depths[b] > most) {
          most = running + depths[b];
          mostWorth = worth + depths[b];
          best.set(spent);
        }
      }
      total += most;
      value += mostWorth;
      for (let k = 0; k < number; k++) slack[k] -= best[k];
    }
    return [total, value];
  }

  // λ of nearly the least bound, and by how much the best network on the way falls short of it.
  function multipliersOf(problem) {
    const { left, cheapest, spread } = problem;
    const number = left.length;
    const units = left.map((room, k) => Math.max(room - cheapest[k], 1));
    let centre = new Float64Array(number), best = centre, bound = Infinity, reached = -Infinity;
    const shape = Array.from({ length: number }, (_, i) => {
      const row = new Float64Array(number);
      row[i] = (4 * spread) ** 2;
      return row;
    });
    const slack = new Float64Array(number);
    for (let round = 0; round < ROUNDS[Math.min(number, ROUNDS.length - 1)]; round++) {
      const [here, value] = boundAt(problem, centre.map((w, k) => w / units[k]), slack);
      if (slack.every((room) => room >= 0)) reached = Math.max(reached, value);
      const lowest = Math.min(...centre);
      let slope;
      if (lowest < 0) slope = centre.map((w) => (w === lowest ? -1 : 0));
      else {
        if (here < bound) { best = centre; bound = here; }
        slope = slack.map((room, k) => room / units[k]);
      }
      // Outside of λ ≥ 0 the way leads back, else down the bound.
      const ahead = shape.map((row) => row.reduce((sum, entry, j) => sum + entry * slope[j], 0));
      // What is left may be too thin for numbers to tell: then it stays where it is.
      const squared = ahead.reduce((sum, a, i) => sum + a * slope[i], 0);
      for (let i = 0; i < number; i++) ahead[i] = squared > 0 ? ahead[i] / Math.sqrt(squared) : 0;
      centre = centre.map((w, i) => w - ahead[i] / (number + 1));
      for (let i = 0; i < number; i++) {
        for (let j = 0; j < number; j++) {
          if (number === 1) shape[i][j] /= 4;
          else {
            const inner = shape[i][j] - (2 / (number + 1)) * ahead[i] * ahead[j];
            shape[i][j] = (inner * number * number) / (number * number - 1);
          }
        }
      }
    }
    return { weights: best.map((w, k) => w / units[k]), hasNetwork: reached > -Infinity };
  }

  // ------------------------------------------------------------------ partial networks

  // States are columns: what each gives up, its value, its costs, and where it comes from.
  const emptyState = (number) => ({
    size: 1, given: [0], values: [0], costs: Array.from({ length: number }, () => [0]),
    before: null, after: null, from: [0], picked: [0],
  });

  // Every way of the first with every way of the second, within ε and what is left. The second
  // are sorted by what they give up.
  function joined(first, second, within, left) {
    const number = left.length;
    const given = [], values = [], from = [], picked = [];
    const costs = Array.from({ length: number }, () => []);
    for (let i = 0; i < first.size; i++) {
      next: for (let j = 0; j < second.size; j++) {
        const total = first.given[i] + second.given[j];
        if (!(total <= within)) break;
        for (let k = 0; k < number; k++) {
          if (first.costs[k][i] + second.costs[k][j] > left[k]) continue next;
        }
        given.push(total);
        values.push(first.values[i] + second.values[j]);
        for (let k = 0; k < number; k++) costs[k].push(first.costs[k][i] + second.costs[k][j]);
        from.push(i);
        picked.push(j);
      }
      if (from.length > 8 * MOST_STATES) throw UNDECIDED;
    }
    return { size: from.length, given, values, costs, before: first, after: second, from, picked };
  }

  const chosen = (column, rows) => {
    const kept = new Array(rows.length);
    for (let i = 0; i < rows.length; i++) kept[i] = column[rows[i]];
    return kept;
  };
  const only = (states, rows) => ({
    ...states,
    size: rows.length,
    given: chosen(states.given, rows),
    values: chosen(states.values, rows),
    costs: states.costs.map((column) => chosen(column, rows)),
    from: chosen(states.from, rows),
    picked: chosen(states.picked, rows),
  });

  // Without states that another matches in value and in every cost.
  function undominated(states) {
    const { values, costs } = states;
    const order = Uint32Array.from({ length: states.size }, (_, i) => i);
    order.sort((a, b) => {
      if (values[a] !== values[b]) return values[b] - values[a];
      for (const column of costs) if (column[a] !== column[b]) return column[a] - column[b];
      return a - b;
    });
    // Of what was kept, all is worth as much or more; so only costs are left to compare.
    const kept = [];
    if (costs.length === 0) kept.push(...order.subarray(0, 1));
    else if (costs.length === 1) {
      let least = Infinity;
      for (const i of order) {
        if (costs[0][i] < least) { kept.push(i); least = costs[0][i]; }
      }
    } else if (costs.length === 2) {
      const [first, second] = costs;
      const steps = []; // those that nothing is below: by rising first and falling second cost
      for (const i of order) {
        let low = 0, high = steps.length;
        while (low < high) {
          const middle = (low + high) >> 1;
          if (first[steps[middle]] <= first[i]) low = middle + 1;
          else high = middle;
        }
        if (low && second[steps[low - 1]] <= second[i]) continue;
        kept.push(i);
        let end = low;
        while (end < steps.length && second[steps[end]] >= second[i]) end++;
        steps.splice(low, end - low, i);
      }
    } else {
      const matches = (a, b) => costs.every((column) => column[a] <= column[b]);
      for (const i of order) if (!kept.some((other) => matches(other, i))) kept.push(i);
    }
    if (kept.length > MOST_STATES) throw UNDECIDED;
    return kept.length === states.size ? states : only(states, kept);
  }

  const sorted = (states) => {
    const rows = Array.from({ length: states.size }, (_, i) => i);
    return only(states, rows.sort((a, b) => states.given[a] - states.given[b]));
  };

  // What each choice of a block gives up against the best one at λ.
  function choicesOf({ choices, values, costs }, weights) {
    const scores = Array.from(values, (value, c) =>
      costs.reduce((score, column, k) => score - weights[k] * column[c], value),
    );
    const top = Math.max(...scores);
    const states = {
      size: choices.length, given: scores.map((score) => top - score), values: [...values],
      costs: costs.map((column) => [...column]), before: null, after: null,
      from: choices.map(() => 0), picked: choices,
    };
    return { top, states: sorted(states) };
  }

  // The ways to build a stage that give up no more than ε, sorted by what they give up.
  function waysOf({ depths, offers }, within, left) {
    let total = 0;
    const given = offers.map(({ top }, b) => (total += top) + depths[b]);
    const most = Math.max(...given);
    for (let b = 0; b < given.length; b++) given[b] = most - given[b];
    let states = emptyState(left.length);
    const ways = { ...emptyState(left.length), size: 0, given: [], values: [], from: [], picked: [] };
    ways.costs = left.map(() => []);
    for (const [b, { states: offer }] of offers.entries()) {
      const rest = Math.min(...given.slice(b));
      states = undominated(joined(states, offer, within - rest, left));
      if (depths[b] === -Infinity) continue;
      for (let i = 0; i < states.size; i++) {
        ways.given.push(states.given[i] + given[b]);
        ways.values.push(states.values[i] + depths[b]);
        ways.costs.forEach((column, k) => column.push(states.costs[k][i]));
        ways.from.push(states);
        ways.picked.push(i);
      }
    }
    ways.size = ways.from.length;
    return sorted(ways);
  }

  const blocksOf = (states, i) =>
    states.before === null
      ? []
      : [...blocksOf(states.before, states.from[i]), states.after.picked[states.picked[i]]];

  function stagesOf(states, i) {
    if (states.before === null) return [];
    const way = states.picked[i];
    const { from, picked } = states.after;
    return [...stagesOf(states.before, states.from[i]), blocksOf(from[way], picked[way])];
  }

  // The network of largest value among those that give up at most ε, and what it falls short by.
  function bestWithin(problem, weights, offered, within) {
    const { stages, left, cheapest } = problem;
    let states = emptyState(left.length);
    const room = left.map((limit, k) => limit - cheapest[k]);
    for (const [s, stage] of stages.entries()) {
      const own = room.map((r, k) => r + stage.least[k]);
      const ways = waysOf({ depths: stage.depths, offers: offered[s] }, within, own);
      stage.least.forEach((cost, k) => { room[k] += cost; });
      states = undominated(joined(states, ways, within, room));
    }
    if (!states.size) return { shortfall: Infinity };
    let best = 0;
    for (let i = 1; i < states.size; i++) if (states.values[i] > states.values[best]) best = i;
    const shortfall = left.reduce(
      (sum, limit, k) => sum + weights[k] * (limit - states.costs[k][best]),
      states.given[best],
    );
    return { shortfall, network: stagesOf(states, best) };
  }

  // The network of largest value within limits, or null; or the one that is cheapest by a sum.
  // What is best within some of the limits and keeps the others is best within all of them, so
  // limits on sums come in one by one, the one that is exceeded most first.
  function optimum(front, limits, minimised = null) {
    const { resources } = front;
    const kept = limits.map((limit, k) => (resources[k].isPeak ? limit : null));
    for (;;) {
      const network = optimumOfAll(front, kept, minimised);
      if (network === null) return null;
      let worst = -1, most = 1;
      for (const [k, resource] of resources.entries()) {
        if (!isBinding(resource, limits[k])) continue;
        const cost = costOf(front, network, k);
        if (cost <= limits[k]) continue;
        const share = cost / Math.max(limits[k], 1);
        if (worst < 0 || share > most) [worst, most] = [k, share];
      }
      if (worst < 0) return network;
      kept[worst] = limits[worst];
    }
  }

  function optimumOfAll(front, limits, minimised) {
    const problem = problemOf(front, limits, minimised);
    if (problem === null) return null;
    const { weights, hasNetwork } = multipliersOf(problem);
    if (!hasNetwork && problem.sums.length > 1) {
      // Is there one at all? The cheapest by one sum within all other limits tells.
      const [k] = problem.sums;
      const others = limits.map((limit, i) => (i === k ? null : limit));
      const least = optimum(front, others, k);
      if (least === null || costOf(front, least, k) > limits[k]) return null;
    }
    const offered = problem.stages.map(({ blocks }) => blocks.map((b) => choicesOf(b, weights)));
    const exchanges = offered.flatMap((offers) => offers.flatMap((offer) => offer.states.given));
    const some = exchanges.filter((given) => given > 0).sort((a, b) => a - b);
    const number = EXCHANGES * Math.max(1, problem.sums.length);
    const largest = weights.reduce((sum, w, k) => sum + w * problem.left[k], problem.spread);
    const least = LEAST_SHARE * largest; // more than sums are rounded by
    let within = Math.max(least, some[Math.min(number, some.length) - 1] ?? 0);
    for (;;) {
      const { shortfall, network } = bestWithin(problem, weights, offered, within + least);
      if (shortfall <= within + least) return network;
      if (within > 2 * largest) return null; // no two networks are further apart
      within = Math.min(shortfall, WIDER * within);
    }
  }

  // ------------------------------------------------------------------ what a network costs

  function costOf(front, network, k) {
    const { isPeak, base, costs } = front.resources[k];
    let total = base;
    network.forEach((blocks, s) => blocks.forEach((choice, b) => {
      const cost = costs[s][b][choice];
      total = isPeak ? Math.max(total, cost) : total + cost;
    }));
    return total;
  }

  return { of: optimum, costOf, isBinding, UNDECIDED };
})();
