"use strict";
// The page over rows.js and details/N.js. All state is in the address behind #, so that a view can be linked to.
// Texts come from tasks, so they only ever become text nodes.
(() => {
  const ROWS_A_PAGE = 100;
  const FILTERS = ["verdict", "stage", "class"];
  const KEYS = [...FILTERS, "q", "unexpected", "sort", "page", "row"];
  const at = (id) => document.getElementById(id);
  const details = new Map(); // page number -> its details, or null where they cannot be loaded
  let data = null;
  let columns = [];
  let order = { key: null, rows: [] };

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  const text = (name, row) => data.texts[name].values[data.texts[name].index[row]];

  function nodeId(row) {
    const [dataset, task, item] = ["dataset", "task", "item"].map((name) => text(name, row));
    if (!item) return task;
    return task ? `datasets/${dataset}/tasks/${task}/task.toml::${item}` : `datasets/${dataset}/dataset.toml::${item}`;
  }

  function label(row) {
    const task = text("task", row) || "dataset.toml";
    return data.texts.dataset.values.length > 1 ? `${text("dataset", row)}/${task}` : task;
  }

  // --- the address ---

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(KEYS.map((key) => [key, given.get(key) || ""]));
  }

  function address(state, changes) {
    const wanted = Object.entries({ ...state, ...changes }).filter(([, value]) => value);
    return "#" + new URLSearchParams(wanted);
  }

  // --- which rows, in which order ---

  function test(state) {
    const wanted = FILTERS.filter((name) => state[name]).map((name) => [
      data.texts[name].index,
      data.texts[name].values.indexOf(state[name]),
    ]);
    const part = state.q.toLowerCase();
    return (row) =>
      wanted.every(([index, value]) => index[row] === value) &&
      (!state.unexpected || data.unexpected[row] === 1) &&
      (!part || label(row).toLowerCase().includes(part));
  }

  function compare(a, b) {
    if (a === b) return 0;
    if (a === null || b === null) return a === null ? 1 : -1; // what has no value comes last in either direction
    return a < b ? -1 : 1;
  }

  function ordered(sort) {
    if (order.key === sort) return order.rows;
    const backwards = sort.startsWith("-");
    const column = columns.find((one) => one.key === sort.replace(/^-/, ""));
    const value = column ? column.value : (row) => -data.unexpected[row];
    const values = Array.from({ length: data.count }, (_, row) => value(row));
    const rows = [...values.keys()];
    rows.sort((a, b) => {
      const known = values[a] !== null && values[b] !== null;
      return (backwards && known ? -1 : 1) * compare(values[a], values[b]) || a - b;
    });
    order = { key: sort, rows };
    return rows;
  }

  // --- drawing ---

  function drawHead(state) {
    at("head").replaceChildren(
      ...columns.map(({ key, title }) => {
        const up = state.sort === key;
        const head = element("th", undefined, { scope: "col" });
        if (up || state.sort === `-${key}`) head.setAttribute("aria-sort", up ? "ascending" : "descending");
        head.append(element("a", title, { href: address(state, { sort: up ? `-${key}` : key, page: "" }) }));
        return head;
      }),
    );
  }

  function drawRow(row, state) {
    const id = nodeId(row);
    const line = element("tr", undefined, { "data-id": id });
    line.classList.add(text("verdict", row).replace(/[^a-z]/g, ""));
    line.classList.toggle("unexpected", data.unexpected[row] === 1);
    line.classList.toggle("open", state.row === id);
    for (const { key, show, number } of columns) {
      const cell = element("td", undefined, { class: number ? "number" : key });
      if (key === "task") cell.append(element("a", show(row), { href: address(state, { row: id }) }));
      else cell.textContent = show(row);
      line.append(cell);
    }
    return line;
  }

  function drawCounts(rows) {
    const counts = new Map();
    for (const row of rows) counts.set(text("verdict", row), (counts.get(text("verdict", row)) || 0) + 1);
    const unexpected = rows.reduce((sum, row) => sum + data.unexpected[row], 0);
    const parts = [...counts].map(([verdict, count]) => `${count} ${verdict}`);
    at("counts").textContent = `${rows.length} of ${data.count} results: ${[...parts, `${unexpected} unexpected`].join(", ")}`;
  }

  function drawPages(state, page, last) {
    const link = (title, to) => element("a", title, { href: address(state, { page: String(to) }) });
    at("pages").replaceChildren(
      ...(page > 1 ? [link("previous", page - 1)] : []),
      element("span", `page ${page} of ${last}`),
      ...(page < last ? [link("next", page + 1)] : []),
    );
  }

  function draw() {
    const state = read();
    for (const name of [...FILTERS, "q"]) if (at(name) !== document.activeElement) at(name).value = state[name];
    at("unexpected").checked = Boolean(state.unexpected);
    const rows = ordered(state.sort).filter(test(state));
    const last = Math.max(1, Math.ceil(rows.length / ROWS_A_PAGE));
    const page = Math.min(Math.max(1, parseInt(state.page, 10) || 1), last);
    drawHead(state);
    at("rows").replaceChildren(
      ...rows.slice((page - 1) * ROWS_A_PAGE, page * ROWS_A_PAGE).map((row) => drawRow(row, state)),
    );
    drawCounts(rows);
    drawPages(state, page, last);
    drawDetails(state);
  }

  // --- details ---

  function drawDetails(state) {
    const panel = at("details");
    panel.hidden = !state.row;
    if (!state.row) return;
    let row = 0;
    while (row < data.count && nodeId(row) !== state.row) row += 1;
    const known = row < data.count;
    const number = Math.floor(row / data.detailsAPage);
    const parts = [element("a", "close", { href: address(state, { row: "" }) }), element("h2", state.row)];
    if (!known) parts.push(element("p", "no result of this run has this id"));
    else if (!details.has(number)) load(number);
    else if (details.get(number) === null) parts.push(element("p", `details/${number}.js is missing beside this page`));
    else parts.push(...pageLink(row), ...described(details.get(number)[row % data.detailsAPage]));
    panel.replaceChildren(...parts);
  }

  function pageLink(row) {
    const link = (title, page, keys) => {
      const state = Object.fromEntries(keys.map((name) => [name, text(name, row)]));
      return [element("a", title, { href: `${page}#${new URLSearchParams(state)}` })];
    };
    const stage = text("stage", row);
    if (stage === "teacher") return link("its trajectory", "models.html", ["dataset", "task", "item"]);
    if (data.reviews && stage.startsWith("judge_")) return link("its reviews", "reviews.html", ["dataset", "task"]);
    return [];
  }

  function load(number) {
    const script = element("script", undefined, { src: `details/${number}.js` });
    script.addEventListener("error", () => {
      details.set(number, null);
      draw();
    });
    document.head.append(script);
  }

  function described(detail) {
    const parts = [element("p", detail.answer), element("p", detail.headline, { class: "headline" })];
    const add = (title, made) => parts.push(element("h3", title), made);
    if (detail.log) add("last lines of the log", element("pre", detail.log));
    if (detail.checks.length) {
      const list = element("ul");
      list.append(...detail.checks.map((check) => element("li", check)));
      add("findings", list);
    }
    if (detail.attacks.length) add("attacks", pairs(detail.attacks));
    add("reproduce", element("pre", detail.reproduce.join("\n")));
    if (detail.seconds.length) add("seconds", pairs(detail.seconds));
    add("facts", pairs(detail.facts));
    return parts;
  }

  function pairs(entries) {
    const list = element("dl");
    for (const [name, value] of entries) list.append(element("dt", name), element("dd", value));
    return list;
  }

  // --- attacks against levels, over all tasks ---

  function counted(cells) {
    const entries = Object.entries(cells || {});
    if (entries.length === 1 && entries[0][1] === 1) return entries[0][0];
    return entries.map(([cell, count]) => `${count} ${cell}`).join(", ");
  }

  function drawMatrix({ levels, attacks }) {
    const entries = Object.entries(attacks);
    at("attacks").hidden = !entries.length;
    at("levels").append(...["Attack", ...levels].map((title) => element("th", title, { scope: "col" })));
    for (const [attack, byLevel] of entries) {
      const line = element("tr");
      line.append(element("th", attack, { scope: "row" }));
      for (const level of levels) {
        const cells = byLevel[level] || {};
        line.append(element("td", counted(cells), cells.paid ? { class: "paid" } : {}));
      }
      at("matrix").append(line);
    }
  }

  // --- start ---

  function makeColumns() {
    const plain = (key, title) => ({ key, title, value: (row) => text(key, row), show: (row) => text(key, row) });
    const number = (key, title, digits) => ({
      key,
      title,
      number: true,
      value: (row) => data[key][row],
      show: (row) => (data[key][row] === null ? "" : data[key][row].toFixed(digits)),
    });
    const used = (column) => data.texts[column.key].values.some(Boolean);
    columns = [
      { key: "task", title: "Task", value: label, show: label },
      plain("stage", "Stage"),
      plain("verdict", "Verdict"),
      plain("class", "Class"),
      number("score", "Score", 3),
      number("seconds", "Seconds", 2),
      plain("image", "Image"),
      ...[plain("attempts", "Attempts"), plain("note", "Note")].filter(used),
      ...data.more.map(({ title, values, index }, at) => {
        const value = (row) => values[index[row]];
        return { key: `more${at}`, title, value, show: value };
      }),
    ];
  }

  function fillFilters() {
    for (const name of FILTERS) {
      const values = [...data.texts[name].values].sort();
      at(name).append(element("option", "any", { value: "" }), ...values.map((value) => element("option", value, { value })));
      at(name).addEventListener("change", () => change({ [name]: at(name).value }));
    }
    at("q").addEventListener("input", () => change({ q: at("q").value }));
    at("unexpected").addEventListener("change", () => change({ unexpected: at("unexpected").checked ? "1" : "" }));
    at("filters").addEventListener("submit", (event) => event.preventDefault());
  }

  function change(changes) {
    location.replace(address(read(), { ...changes, page: "" }));
  }

  window.otval = {
    index(given) {
      data = given;
      at("run").append(...pairs(data.run).children);
      at("models").hidden = !data.attempts;
      at("reviews").hidden = !data.reviews;
      makeColumns();
      fillFilters();
      drawMatrix(data.attacks);
      window.addEventListener("hashchange", draw);
      draw();
    },
    details(number, rows) {
      details.set(number, rows);
      draw();
    },
  };
})();
