"use strict";
// Zoom, search and keys for every flame graph of the page. The drawing is complete without it.
for (const figure of document.querySelectorAll("figure.flame")) {
  const drawing = figure.querySelector("svg.boxes");
  if (!drawing) continue;
  const find = (selector) => figure.querySelector(selector);
  const [search, whole, found, details] = ["input", "button.whole", "output", ".details"].map(find);
  const boxes = [...drawing.children].filter((element) => element.getAttribute("role") === "treeitem").map((element) => ({
    element,
    left: parseFloat(element.getAttribute("x")),
    width: parseFloat(element.getAttribute("width")),
    row: Number(element.getAttribute("aria-level")) - 1,
    title: element.querySelector("title").textContent,
    children: [],
  }));
  const height = Number(boxes[0].element.getAttribute("height"));
  const of = new Map(boxes.map((box) => [box.element, box]));
  const rounding = 0.0005;
  const within = (inner, outer) =>
    inner.left >= outer.left - rounding && inner.left + inner.width <= outer.left + outer.width + rounding;

  // Rows come from the outermost inwards, each from left to right: a box's parent is the last of the row above that holds it.
  const rows = [];
  for (const box of boxes) (rows[box.row] ??= []).push(box);
  for (const [index, row] of rows.entries()) {
    let at = 0;
    for (const box of index ? row : []) {
      const above = rows[index - 1];
      while (at + 1 < above.length && !within(box, above[at])) at += 1;
      box.parent = above[at];
      box.parent.children.push(box);
    }
  }

  let zoomed = boxes[0];
  const zoom = (to) => {
    zoomed = to;
    let deepest = 0;
    for (const box of boxes) {
      const inside = box.row >= to.row && within(box, to);
      const around = box.row < to.row && within(to, box);
      box.element.style.display = inside || around ? "" : "none";
      box.element.classList.toggle("around", around);
      if (!inside && !around) continue;
      deepest = Math.max(deepest, box.row);
      const left = around ? 0 : (100 * (box.left - to.left)) / to.width;
      const width = around ? 100 : (100 * box.width) / to.width;
      box.element.setAttribute("x", left + "%");
      box.element.setAttribute("width", width + "%");
    }
    drawing.setAttribute("height", (deepest + 1) * height);
    whole.disabled = to === boxes[0];
  };

  const describe = (box) => {
    const [name, ...rest] = box.title.split("\n");
    const strong = document.createElement("strong");
    strong.textContent = name;
    details.replaceChildren(strong, " " + rest.join(" · "));
  };

  let current = boxes[0];
  const go = (box) => {
    if (!box || box.element.style.display === "none") return;
    current.element.setAttribute("tabindex", "-1");
    current = box;
    current.element.setAttribute("tabindex", "0");
    current.element.focus();
  };
  const sibling = (box, step) => {
    const row = rows[box.row].filter((other) => other.element.style.display !== "none");
    return row[row.indexOf(box) + step];
  };
  const show = (box) => {
    zoom(box);
    go(box);
  };

  const mark = () => {
    const words = search.value.trim().toLowerCase();
    let matched = 0;
    const visit = (box, counted) => {
      const hit = words !== "" && box.title.split("\n")[0].toLowerCase().includes(words);
      box.element.classList.toggle("hit", hit);
      // What is within a hit is counted with it.
      if (hit && !counted) matched += box.width;
      for (const child of box.children) visit(child, counted || hit);
    };
    visit(boxes[0], false);
    found.textContent = words === "" ? "" : matched > 0 ? matched.toFixed(1) + " % of the width" : "nothing found";
  };

  const boxAt = (event) => of.get(event.target.closest("[role=treeitem]"));
  drawing.addEventListener("click", (event) => {
    const box = boxAt(event);
    if (box) show(box);
  });
  for (const name of ["pointerover", "focusin"]) {
    drawing.addEventListener(name, (event) => {
      const box = boxAt(event);
      if (box) describe(box);
    });
  }
  drawing.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const keys = {
      ArrowDown: () => go(current.children[0]),
      ArrowUp: () => go(current.parent),
      ArrowLeft: () => go(sibling(current, -1)),
      ArrowRight: () => go(sibling(current, 1)),
      Home: () => go(boxes[0]),
      Enter: () => show(current),
      " ": () => show(current),
      Escape: () => show(boxes[0]),
      "/": () => search.focus(),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  search.addEventListener("input", mark);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    search.value = "";
    mark();
  });
  whole.addEventListener("click", () => show(boxes[0]));

  find(".tools").hidden = false;
  details.hidden = false;
  describe(boxes[0]);
}
