// What a picture's darkest colour stands for: its own largest weight, that of both pictures, or a row's whole weight.

const SCALES = ["own", "shared", "row"];
const SCALE_NAMES = { own: "Own", shared: "Shared", row: "Row share" };

/**
 * The scale that was chosen. Until one is, models beside each other have one that they share: that of
 * the weights, or where only one's weights sum to 1, that of shares.
 */
function shownScale() {
  if (state.scale !== null && (state.scale !== "shared" || state.other !== null)) return state.scale;
  if (state.other === null) return "own";
  const [here, beside] = [state.model, state.other].map((model) => models[model].kinds[state.kind].sumsToOne);
  return here === beside ? "shared" : "row";
}

/**
 * Give pictures that stand beside each other their colours.
 * @param {Picture[]} pictures each gets `shades`, from -1 to 1 for each weight, and `range`, what 1 stands for
 */
function shade(pictures) {
  const scale = shownScale();
  const largest = pictures.reduce((most, { max }) => Math.max(most, max), 0);
  for (const picture of pictures) {
    const top = scale === "shared" ? largest : picture.max;
    picture.shades = scale === "row" ? rowShares(picture) : picture.weights.map((weight) => (weight === 0 ? 0 : weight / top));
    picture.range = scaleText(scale, top, picture.negative);
  }
}

/** @param {Picture} picture @returns {Float64Array} weights as shares of what their row has */
function rowShares({ rows, columns, weights }) {
  const shares = new Float64Array(weights.length);
  for (let row = 0; row < rows.length; row++) {
    const start = row * columns.length;
    let total = 0;
    for (let cell = start; cell < start + columns.length; cell++) total += Math.abs(weights[cell]);
    for (let cell = start; cell < start + columns.length; cell++) if (total) shares[cell] = weights[cell] / total;
  }
  return shares;
}

function scaleText(scale, top, negative) {
  const sign = negative ? "±" : "";
  if (scale === "row") return `${sign}100 % of the row`;
  const both = scale === "shared" ? " in both pictures" : "";
  return `${sign}${weightText(top)}${both}`;
}
