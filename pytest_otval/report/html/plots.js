"use strict";
// Plots as SVG, each from the data of one block. Texts only ever become text nodes; colours come from the style sheet.
window.otvalPlots = (() => {
  const WIDTH = 720;
  const ROW = 20;
  const NAME_LETTERS = 40;

  function svg(tag, attributes = {}, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function canvas(title, height) {
    const made = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img" });
    made.append(svg("title", {}, title));
    return made;
  }

  const short = (name) => (name.length > NAME_LETTERS ? `${name.slice(0, NAME_LETTERS - 1)}…` : name);
  const nameWidth = (names) => Math.min(280, 20 + 7 * Math.max(...names.map((name) => short(name).length), 4));

  function legend(names, y, made) {
    let x = 10;
    names.forEach((name, at) => {
      made.append(svg("rect", { x, y: y - 9, width: 10, height: 10, class: `s${at % 4}` }));
      made.append(svg("text", { x: x + 14, y }, name));
      x += 34 + 6.5 * name.length;
    });
  }

  function curves({ title, ks, series }) {
    const [left, top, right, bottom] = [40, 30, WIDTH - 20, 260];
    const made = canvas(title, bottom + 40);
    const last = Math.max(ks[ks.length - 1], 2);
    const x = (k) => left + ((right - left) * Math.log2(k)) / Math.log2(last);
    const y = (share) => bottom - (bottom - top) * share;
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      made.append(svg("line", { x1: left, x2: right, y1: y(share), y2: y(share), class: "grid" }));
      made.append(svg("text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, share));
    }
    for (const k of ks) made.append(svg("text", { x: x(k), y: bottom + 16, "text-anchor": "middle" }, k));
    made.append(svg("text", { x: right, y: bottom + 34, "text-anchor": "end" }, "k attempts"));
    series.forEach(({ points }, at) => {
      const known = points.map((point, place) => [ks[place], ...point]).filter(([, value]) => value !== null);
      const ranged = known.filter(([, , low]) => low !== null);
      const upper = ranged.map(([k, , , high]) => `${x(k)},${y(high)}`);
      const lower = ranged.map(([k, , low]) => `${x(k)},${y(low)}`).reverse();
      if (ranged.length > 1) made.append(svg("polygon", { points: [...upper, ...lower].join(" "), class: `band s${at}` }));
      const line = known.map(([k, value]) => `${x(k)},${y(value)}`).join(" ");
      made.append(svg("polyline", { points: line, class: `line s${at}${at ? "" : " under"}` }));
      for (const [k, value, low, high] of known) {
        const dot = svg("circle", { cx: x(k), cy: y(value), r: 3, class: `s${at}` });
        const ends = low === null ? "" : ` (${low.toFixed(3)} to ${high.toFixed(3)})`;
        dot.append(svg("title", {}, `k = ${k}: ${value.toFixed(3)}${ends}`));
        made.append(dot);
      }
    });
    legend(series.map(({ name }) => name), 14, made);
    return made;
  }

  function bars({ title, legend: names, rows }) {
    const head = names.length > 1 ? 28 : 6;
    const left = nameWidth(rows.map(([name]) => name));
    const made = canvas(title, head + ROW * rows.length + 6);
    const sums = rows.map(([, parts]) => parts.reduce((sum, part) => sum + part, 0));
    const scale = (WIDTH - left - 70) / Math.max(...sums, 1);
    rows.forEach(([name, parts], row) => {
      const y = head + ROW * row;
      const label = svg("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, short(name));
      label.append(svg("title", {}, name));
      made.append(label);
      let x = left;
      parts.forEach((part, at) => {
        if (!part) return;
        const bar = svg("rect", { x, y: y + 3, width: part * scale, height: ROW - 6, class: `s${at % 4}` });
        bar.append(svg("title", {}, `${name}: ${part} ${names[at]}`));
        made.append(bar);
        x += part * scale;
      });
      made.append(svg("text", { x: x + 6, y: y + 14, class: "value" }, sums[row].toLocaleString("en")));
    });
    if (names.length > 1) legend(names, 14, made);
    return made;
  }

  function ranges({ title, rows }) {
    const left = nameWidth(rows.map(([name]) => name));
    const right = WIDTH - 60;
    const bottom = 6 + ROW * rows.length;
    const made = canvas(title, bottom + 22);
    const x = (share) => left + (right - left) * share;
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      made.append(svg("line", { x1: x(share), x2: x(share), y1: 4, y2: bottom, class: "grid" }));
      made.append(svg("text", { x: x(share), y: bottom + 16, "text-anchor": "middle" }, share));
    }
    rows.forEach(([name, value, low, high], row) => {
      const y = 6 + ROW * row + ROW / 2;
      const label = svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short(name));
      label.append(svg("title", {}, name));
      const dot = svg("circle", { cx: x(value), cy: y, r: 4, class: "s0" });
      dot.append(svg("title", {}, `${name}: ${value.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`));
      made.append(label, svg("line", { x1: x(low), x2: x(high), y1: y, y2: y, class: "line s0" }), dot);
    });
    return made;
  }

  return { curves, bars, ranges };
})();
