"use strict";
// Filters of the page that says what patches did; its rows are there without it.
(() => {
  const FILTERS = ["became", "stage", "patch"];
  const at = (id) => document.getElementById(id);
  const rows = [...at("items").tBodies[0].rows];
  const cell = (row, name) => row.querySelector(`.${name}`).textContent;

  function holds(row) {
    const [became, stage, patch] = FILTERS.map((name) => at(name).value);
    return (
      (!became || cell(row, "became") === became) &&
      (!stage || cell(row, "stage") === stage) &&
      (!patch || cell(row, "patch").split(" + ").includes(patch)) &&
      cell(row, "task").toLowerCase().includes(at("q").value.toLowerCase())
    );
  }

  function draw() {
    let count = 0;
    for (const row of rows) {
      row.hidden = !holds(row);
      count += row.hidden ? 0 : 1;
    }
    at("count").textContent = `${count} of ${rows.length} items`;
    const wanted = Object.fromEntries([...FILTERS, "q"].map((name) => [name, at(name).value]).filter(([, value]) => value));
    history.replaceState(null, "", `#${new URLSearchParams(wanted)}`);
  }

  function read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of [...FILTERS, "q"]) at(name).value = given.get(name) || "";
    draw();
  }

  at("filters").hidden = false;
  at("filters").addEventListener("input", draw);
  at("filters").addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", read);
  read();
})();
