"use strict";
// The pages over models-data.js, models/N.js, tasks/N.js and trajectories/N.js: an overview, one model at one dataset,
// one task, one attempt; and those over reviews-data.js and reviews/N.js: an overview, one task, a file of it.
// All state is in the address behind #. Texts come from tasks, so they only become text nodes.
(() => {
  const ROWS_A_PAGE = 100;
  const KEYS = ["dataset", "model", "task", "item", "step", "file", "line"];
  const at = (id) => document.getElementById(id);
  const loaded = new Map(); // "models/3" -> its data, or null where it cannot be loaded
  const orders = new Map(); // title of a table -> [column, direction, page]
  let data = null;

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  // --- the address, and what it asks for ---

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(KEYS.map((key) => [key, given.get(key) || ""]));
  }

  function address(state) {
    return "#" + new URLSearchParams(Object.entries(state).filter(([, value]) => value));
  }

  function part(folder, number) {
    const name = `${folder}/${number}`;
    if (loaded.has(name)) return loaded.get(name);
    loaded.set(name, undefined);
    const script = element("script", undefined, { src: `${name}.js` });
    script.addEventListener("error", () => {
      loaded.set(name, null);
      draw();
    });
    document.head.append(script);
    return undefined;
  }

  function missing(folder, number) {
    const said = loaded.get(`${folder}/${number}`) === null ? `${folder}/${number}.js is missing beside this page` : "…";
    return [element("p", said)];
  }

  const place = (list, key) => list.findIndex((one) => one[0] === key[0] && one[1] === key[1]);

  // --- views ---

  function drawModel({ dataset, model }) {
    const number = place(data.sets, [dataset, model]);
    if (number < 0) return [element("p", "no model of this run has this name")];
    const blocks = part("models", number);
    return blocks ? blocks.map(drawBlock) : missing("models", number);
  }

  function taskPage({ dataset, task }) {
    const number = place(data.tasks, [dataset, task]);
    if (number < 0) return { said: [element("p", "no task of this run has this name")] };
    const file = Math.floor(number / data.tasksAFile);
    const folder = data.pages || "tasks";
    const tasks = part(folder, file);
    return tasks ? { page: tasks[number % data.tasksAFile] } : { said: missing(folder, file) };
  }

  function drawTask(state) {
    const { page, said } = taskPage(state);
    return said || page.blocks.map(drawBlock);
  }

  function drawFile(state) {
    const { page, said } = taskPage(state);
    if (said) return said;
    if (!Object.hasOwn(page.files, state.file)) return [element("p", "This file is not among these pages.")];
    const lines = page.files[state.file].split("\n");
    const drawn = lines.map((line, at) => {
      const isGoal = String(at + 1) === state.line;
      return element(isGoal ? "mark" : "span", `${String(at + 1).padStart(4)}  ${line}\n`, isGoal ? { class: "goal" } : {});
    });
    const shown = element("pre");
    shown.append(...drawn);
    return [shown];
  }

  function drawAttempt(state) {
    const { page, said } = taskPage(state);
    if (said) return said;
    const id = `datasets/${state.dataset}/tasks/${state.task}/task.toml::${state.item}`;
    const result = element("p");
    result.append(element("a", "its result, with its log and evidence", { href: `index.html#${new URLSearchParams({ row: id })}` }));
    if (!(state.item in page.places)) return [result, element("p", "The trajectory of this attempt is not among these pages.")];
    const [file, number] = page.places[state.item];
    const talks = part("trajectories", file);
    return [result, ...(talks ? talks[number].flatMap(drawTalk) : missing("trajectories", file))];
  }

  function drawPath(state) {
    const { dataset, model, task, item, file } = state;
    const links = [element("a", "all results", { href: "index.html" }), element("a", data.title || "models", { href: "#" })];
    if (model) links.push(element("a", `${model} at ${dataset}`, { href: address({ dataset, model }) }));
    if (task) links.push(element("a", `${dataset}/${task}`, { href: address({ dataset, task }) }));
    if (item) links.push(element("a", item, { href: address(state) }));
    if (file) links.push(element("a", file, { href: address(state) }));
    at("path").replaceChildren(...links);
  }

  function draw() {
    const state = read();
    drawPath(state);
    let parts;
    if (state.file) parts = drawFile(state);
    else if (state.item) parts = drawAttempt(state);
    else if (state.task) parts = drawTask(state);
    else if (state.model) parts = drawModel(state);
    else parts = data.blocks.map(drawBlock);
    at("blocks").replaceChildren(...parts);
    const goal = state.step ? `[data-step="${CSS.escape(state.step)}"]` : ".goal";
    at("blocks").querySelector(goal)?.scrollIntoView();
  }

  // --- blocks ---

  function drawBlock(block) {
    const made = element("section");
    if (block.title) made.append(element("h2", block.title));
    if (block.kind === "words") made.append(...block.lines.map((line) => element("p", line)));
    else if (!block.rows?.length && !block.series) made.append(element("p", "none", { class: "note" }));
    else if (block.kind === "table") fillTable(block, made);
    else if (block.kind === "findings") made.append(...block.rows.map(drawFinding));
    else made.append(window.otvalPlots[block.kind](block));
    if (block.note) made.append(element("p", block.note, { class: "note" }));
    return made;
  }

  function drawFinding({ head, loud, text: said, fix, why, measured, candidate, quotes }) {
    const made = element("div", undefined, { class: loud ? "finding loud" : "finding" });
    made.append(element("h3", head));
    if (said) made.append(element("p", said));
    for (const { where, quote, state, href } of quotes) {
      const goal = state ? address(state) : href;
      const place = element("p");
      place.append(goal ? element("a", where, { href: goal }) : where);
      made.append(place, element("blockquote", quote));
    }
    if (why) made.append(element("p", why, { class: "note" }));
    if (measured) made.append(element("p", measured, { class: "note" }));
    if (fix) made.append(element("p", `Fix: ${fix}`));
    if (candidate) made.append(folded("candidate", candidate, false));
    return made;
  }

  const text = (cell) => (typeof cell === "string" ? cell : cell.text);
  const isNumber = (cell) => typeof cell === "object" && "sort" in cell;
  const sortValue = (cell) => (isNumber(cell) ? cell.sort : text(cell));

  function compare(a, b) {
    if (a === b) return 0;
    if (a === null || b === null) return a === null ? 1 : -1; // what has no value comes last in either direction
    return a < b ? -1 : 1;
  }

  function ordered(rows, column, direction) {
    if (column === null) return rows;
    return [...rows].sort((a, b) => {
      const [one, other] = [sortValue(a[column]), sortValue(b[column])];
      return (one === null || other === null ? 1 : direction) * compare(one, other);
    });
  }

  function fillTable(block, section) {
    const key = `${location.hash} ${block.title}`;
    const table = element("table");
    const pages = element("nav");
    const redraw = (change) => {
      orders.set(key, { ...order(), ...change });
      fill();
    };
    const order = () => orders.get(key) || { column: null, direction: 1, page: 0 };
    const fill = () => {
      const { column, direction, page } = order();
      const head = element("tr");
      head.append(...block.head.map((title, number) => drawHead(title, number, column, direction, redraw)));
      block.rows[0].forEach((cell, number) => head.children[number].classList.toggle("number", isNumber(cell)));
      const rows = ordered(block.rows, column, direction);
      const shown = rows.slice(page * ROWS_A_PAGE, (page + 1) * ROWS_A_PAGE).map(drawRow);
      table.replaceChildren(head, ...shown);
      drawPages(pages, page, Math.ceil(rows.length / ROWS_A_PAGE), redraw);
    };
    fill();
    section.append(table, pages);
  }

  function button(title, act) {
    const made = element("a", title, { href: location.hash || "#" });
    made.addEventListener("click", (event) => {
      event.preventDefault();
      act();
    });
    return made;
  }

  function drawHead(title, number, column, direction, redraw) {
    const head = element("th", undefined, { scope: "col" });
    const next = column === number ? -direction : -1; // numbers are looked at from the greatest down
    if (column === number) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    head.append(button(title, () => redraw({ column: number, direction: next, page: 0 })));
    return head;
  }

  function drawRow(row) {
    const line = element("tr");
    for (const cell of row) {
      const made = element("td");
      made.classList.toggle("number", isNumber(cell));
      if (typeof cell === "object" && cell.state) made.append(element("a", cell.text, { href: address(cell.state) }));
      else made.textContent = text(cell);
      line.append(made);
    }
    return line;
  }

  function drawPages(pages, page, count, redraw) {
    if (count < 2) return;
    pages.replaceChildren(
      ...(page > 0 ? [button("previous", () => redraw({ page: page - 1 }))] : []),
      element("span", `page ${page + 1} of ${count}`),
      ...(page + 1 < count ? [button("next", () => redraw({ page: page + 1 }))] : []),
    );
  }

  // --- a trajectory ---

  function drawTalk({ title, steps }) {
    return [element("h2", title), ...steps.map(drawMessage)];
  }

  function folded(title, content, open) {
    const made = element("details");
    made.open = open;
    const summary = element("summary");
    summary.append(title);
    made.append(summary, element("pre", content));
    return made;
  }

  function drawMessage({ who, text: said, thought, calls, note }) {
    const made = element("div", undefined, { class: `message ${who.split(" ")[1] || ""}` });
    made.dataset.step = who.split(" ")[0];
    made.append(element("h3", note ? `${who} · ${note}` : who));
    const isAgent = who.endsWith("agent");
    if (thought) made.append(folded("reasoning", thought, false));
    if (said) made.append(isAgent || !who ? element("p", said) : folded(said.split("\n", 1)[0].slice(0, 100), said, false));
    for (const { tool, command, output, end } of calls || []) {
      const lines = command.split("\n");
      const title = element("span");
      title.append(`${tool} `, element("code", lines[0].slice(0, 160)), lines.length > 1 ? ` and ${lines.length - 1} more lines` : "", end ? ` · ${end}` : "");
      const call = folded(title, output, false);
      if (lines.length > 1 || lines[0].length > 160) call.insertBefore(element("pre", command), call.lastChild);
      made.append(call);
    }
    return made;
  }

  // --- start ---

  const keep = (folder) => (number, given) => {
    loaded.set(`${folder}/${number}`, given);
    draw();
  };

  window.otval = {
    overview(given) {
      data = given;
      window.addEventListener("hashchange", draw);
      draw();
    },
    model: keep("models"),
    tasks: keep("tasks"),
    reviews: keep("reviews"),
    trajectories: keep("trajectories"),
  };
})();
