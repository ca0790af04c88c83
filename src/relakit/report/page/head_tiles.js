// All heads of a layer side by side, as small pictures on canvases: one pixel for each token.

const TILE_WIDTH = 80;
const SORT_NAMES = { number: "Number", null: "Null rate", sparsity: "Sparsity", aer: "AER" };

/** Heads of the layer in the chosen order, the mean of all last. */
function headOrder(model) {
  const { heads } = models[model].kinds[state.kind];
  const { layer } = shownHead(model);
  const order = [...Array(heads).keys()];
  if (state.sort !== "number") {
    const value = (head) => headNumbers(model, state.kind, layer, head, state.reading)[state.sort];
    order.sort((a, b) => (value(a) ?? Infinity) - (value(b) ?? Infinity) || a - b);
  }
  return [...order, heads];
}

/** @returns {Map<number, Picture>} of each head, in the chosen order */
function tilePictures(model, view) {
  const { kind, reading, layer } = shownHead(model);
  return new Map(headOrder(model).map((head) => [head, pictureOf(view, { kind, layer, head, units: "tokens", reading })]));
}

/**
 * @param {number} model
 * @param {Map<number, Picture>} pictures with shades
 * @returns {HTMLElement}
 */
function headTiles(model, pictures) {
  const { kind, reading, layer, head: chosen } = shownHead(model);
  const tiles = [...pictures].map(([head, picture]) => {
    const numbers = headNumbers(model, kind, layer, head, reading);
    const [name, measure] = tileTexts(model, head, numbers);
    return el(
      "button",
      {
        type: "button",
        class: "tile",
        "data-head": head,
        "aria-pressed": String(head === chosen),
        "aria-label": `${headName(kind, model, head)}, ${measure}`,
        click: () => chooseHead(model, head),
      },
      tileCanvas(picture),
      el("span", { class: "name", text: name }),
      el("span", { class: "measure", text: measure }),
    );
  });
  return el("div", { class: "tiles" }, ...tiles);
}

function tileTexts(model, head, numbers) {
  const name = isMean(state.kind, model, head) ? "Mean" : `Head ${head + 1}`;
  if (state.sort === "aer" && numbers.aer !== null) return [name, `AER ${fixed(numbers.aer)}`];
  if (state.sort === "sparsity") return [name, `zeros ${percent(numbers.sparsity, 0)}`];
  return [name, `null ${percent(numbers.null, 0)}`];
}

function tileCanvas({ rows, columns, weights, shades, nullRows }) {
  const canvas = el("canvas", { width: columns.length, height: rows.length, "aria-hidden": "true" });
  const height = Math.round((TILE_WIDTH * rows.length) / columns.length);
  canvas.style.width = `${TILE_WIDTH}px`;
  canvas.style.height = `${Math.min(height, 2 * TILE_WIDTH)}px`;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns.length, rows.length);
  const scales = currentScales();
  const nullColour = ramp([colour("null-tint"), colour("null-tint")])[0];
  for (let cell = 0; cell < weights.length; cell++) {
    const isNull = nullRows[Math.floor(cell / columns.length)];
    if (weights[cell] === 0 && !isNull) continue;
    image.data.set(isNull ? nullColour : scaleColour(scales, shades[cell]), 4 * cell);
    image.data[4 * cell + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
