"use strict";
// Plots are drawn when they come near the screen, in the colours of the page.
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  const chosen = () => {
    try { return localStorage.getItem("hardcorenas-theme"); } catch { return null; }
  };
  root.dataset.theme = chosen() || (system.matches ? "dark" : "light");

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function themed(layout) {
    const [text, line, paper] = ["--text", "--line", "--paper"].map(colour);
    const result = {
      ...layout,
      font: { ...layout.font, color: text, family: getComputedStyle(document.body).fontFamily },
      hoverlabel: { ...layout.hoverlabel, bgcolor: paper, bordercolor: line, font: { color: text } },
    };
    for (const key of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(key)) {
        result[key] = { ...layout[key], gridcolor: line, linecolor: line, tickcolor: line, fixedrange: true };
      }
    }
    return result;
  }

  function draw(place) {
    const plot = plots[place.dataset.plot];
    place.dataset.drawn = "yes";
    return Plotly.react(place, plot.data, themed(plot.layout), {
      responsive: true,
      displayModeBar: false,
    });
  }

  // A plot that was hidden has not heard of a new width of the window.
  function fit() {
    places.filter((place) => place.dataset.drawn && isShown(place)).forEach((place) => Plotly.Plots.resize(place));
  }

  const isShown = (place) => place.offsetParent !== null;
  const places = [...document.querySelectorAll(".plot")];
  // Room is kept from the start, so that nothing jumps; and plotly, redrawn, forgets the height.
  for (const place of places) place.style.height = `${plots[place.dataset.plot].layout.height}px`;
  const waiting = () => places.filter((place) => !place.dataset.drawn && isShown(place));

  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
      }
    },
    { rootMargin: "400px" },
  );
  places.forEach((place) => watcher.observe(place));

  // What is below the fold follows while nobody waits, so that printing has it too.
  const later = window.requestIdleCallback || ((task) => setTimeout(task, 50));
  function drawRest() {
    const [next] = waiting();
    if (!next) {
      root.dataset.ready = "yes";
      return;
    }
    draw(next);
    later(drawRest);
  }
  later(drawRest);

  function recolour() {
    places.filter((place) => place.dataset.drawn).forEach(draw);
  }
  document.getElementById("theme").addEventListener("click", () => {
    wear(root.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("hardcorenas-theme", root.dataset.theme); } catch { /* a file may not remember */ }
  });
  function wear(theme) {
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    recolour();
  }
  system.addEventListener("change", () => {
    if (!chosen()) wear(system.matches ? "dark" : "light");
  });
  // Paper is white.
  let before = null;
  addEventListener("beforeprint", () => { before = root.dataset.theme; wear("light"); });
  addEventListener("afterprint", () => wear(before));

  document.getElementById("choose").addEventListener("change", (event) => {
    for (const part of document.querySelectorAll("[data-network]")) {
      part.hidden = part.dataset.network !== event.target.value;
    }
    fit();
    later(drawRest);
  });
  for (const part of document.querySelectorAll("details")) {
    part.addEventListener("toggle", () => {
      fit();
      later(drawRest);
    });
  }

  // The slider over the steps of a search.
  for (const slider of document.querySelectorAll(".slider")) {
    const place = document.querySelector(`[data-plot="${slider.dataset.for}"]`);
    const plot = plots[slider.dataset.for];
    const names = JSON.parse(slider.dataset.names);
    const [button, input, output] = ["button", "input", "output"].map((tag) => slider.querySelector(tag));
    let timer = null;

    const show = () => {
      const frame = plot.frames[input.value];
      output.value = names[input.value];
      plot.data[0].z = frame[0];
      plot.data[1].z = frame[1];
      if (place.dataset.drawn) Plotly.restyle(place, { z: [frame[0], frame[1]] }, [0, 1]);
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      button.textContent = "play";
    };
    input.addEventListener("input", () => { stop(); show(); });
    button.addEventListener("click", () => {
      if (timer) return stop();
      if (input.value === input.max) input.value = 0;
      button.textContent = "stop";
      timer = setInterval(() => {
        input.value = Number(input.value) + 1;
        show();
        if (input.value === input.max) stop();
      }, 120);
    });
  }
})();
