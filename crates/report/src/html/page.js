"use strict";
// Sorts tables of verdicts, and unpacks large content when it is to be seen. Without it tables stand in the order of the first metric.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  // A row and those that belong to it, in the order of the file.
  const groups = [];
  for (const row of body.rows) {
    if (row.classList.contains("own")) groups.at(-1).push(row);
    else groups.push([row]);
  }
  const first = groups.shift();
  const last = groups.pop();
  const name = (group) => group[0].cells[0].textContent;
  const key = (group, column) => parseFloat(group[0].cells[column]?.dataset.key ?? "NaN");
  const order = (column, sign) => (a, b) => {
    if (column === 0) return sign * name(a).localeCompare(name(b), "en", { numeric: true });
    const [left, right] = [key(a, column), key(b, column)];
    // What has no number comes last, either way.
    if (isNaN(left) || isNaN(right)) return isNaN(left) - isNaN(right);
    return sign * (left - right);
  };
  for (const [column, head] of heads.entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descends = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descends ? "descending" : "ascending");
      const sorted = [...groups].sort(order(column, descends ? -1 : 1));
      body.append(...[first, ...sorted, last].flat());
    });
  }
}

const unpack = async (template) => {
  template.classList.remove("packed");
  const bytes = Uint8Array.from(atob(template.content.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  template.parentElement.innerHTML = await new Response(stream).text();
};
const unpackVisible = (element) => {
  for (const template of element.querySelectorAll("template.packed")) {
    if (template.closest("details:not([open])") === null) unpack(template);
  }
};
document.addEventListener("toggle", (event) => unpackVisible(event.target), true);
// What no fold hides has no toggle event, and that of a fold that is open from the start may precede this script.
unpackVisible(document);
