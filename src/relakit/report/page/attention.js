// From a view to the picture of one head: tokens or words on the axes, weights between them.

const BEGIN = "⟨begin⟩";
const END = "⟨end⟩";

/**
 * A matrix to look at.
 * @typedef {Object} Picture
 * @property {string[]} rows labels of the queries
 * @property {string[]} columns labels of the keys
 * @property {Array<string|undefined>} rowTags what is known about the rows' words
 * @property {Array<string|undefined>} columnTags
 * @property {Float64Array} weights [rows * columns]
 * @property {boolean[]} nullRows rows whose weights are all 0
 * @property {number} max the largest weight's size
 * @property {Array<[number, number]>} seen of each row, the first key that it may see, and the one after the last
 * @property {boolean} negative some weight is below 0
 * @property {Float64Array} [shades] how strong each weight's colour is, see `shade`
 * @property {string} [range] what the strongest colour stands for
 */

/**
 * One side of a matrix: each token's label and group, and the groups' labels and tags.
 * @typedef {{labels: string[], groups: number[], groupLabels: string[],
 *   groupTags: Array<string|undefined>}} Axis
 */

/** The number of heads, which stands for their mean, is a choice of head too. */
function isMean(kind, model, head) {
  return head === models[model].kinds[kind].heads;
}

function headName(kind, model, head) {
  return isMean(kind, model, head) ? "mean of heads" : `head ${head + 1}`;
}

/** @returns {Float64Array} [queries * keys] of a head, or of the mean of the layer's heads */
function headWeights(view, kind, layer, head) {
  const { shape, scales, levels, steps } = view.kinds[kind];
  const [, heads, queries, keys] = shape;
  const size = queries * keys;
  const weights = new Float64Array(size);
  const used = head < heads ? [head] : [...Array(heads).keys()];
  for (const one of used) {
    const scale = scales[layer * heads + one] / steps / used.length;
    const start = (layer * heads + one) * size;
    for (let cell = 0; cell < size; cell++) weights[cell] += levels[start + cell] * scale;
  }
  return weights;
}

/** @returns {{rows: Axis, columns: Axis}} */
function axesOf(view, kind, reading) {
  const source = axis(view.sourceTokens, view.sourceTokenWords, view.sourceWords, []);
  if (kind === "self") return { rows: source, columns: source };
  const target = axis(view.targetTokens, view.targetTokenWords, view.targetWords, view.tags ?? []);
  if (kind === "encoder") return { rows: withEnd(source), columns: withEnd(source) };
  if (kind === "decoder") return { rows: withBegin(target), columns: withBegin(target) };
  return {
    rows: reading === "shifted" ? withBegin(target) : withEnd(target),
    columns: withEnd(source),
  };
}

function axis(labels, groups, groupLabels, groupTags) {
  return { labels, groups, groupLabels, groupTags };
}

function withEnd({ labels, groups, groupLabels, groupTags }) {
  return axis([...labels, END], [...groups, groupLabels.length], [...groupLabels, END], groupTags);
}

function withBegin({ labels, groups, groupLabels, groupTags }) {
  const moved = groups.map((group) => (group < 0 ? group : group + 1));
  return axis([BEGIN, ...labels], [0, ...moved], [BEGIN, ...groupLabels], [undefined, ...groupTags]);
}

/**
 * Attention between words: the sum over a key word's tokens, the mean over a query word's.
 * @param {Float64Array} weights between tokens
 */
function betweenWords(weights, rows, columns) {
  const width = columns.groupLabels.length;
  const sizes = new Array(rows.groupLabels.length).fill(0);
  for (const group of rows.groups) if (group >= 0) sizes[group]++;
  const result = new Float64Array(sizes.length * width);
  for (let query = 0; query < rows.groups.length; query++) {
    const row = rows.groups[query];
    if (row < 0) continue;
    for (let key = 0; key < columns.groups.length; key++) {
      const column = columns.groups[key];
      const weight = weights[query * columns.groups.length + key];
      if (column >= 0 && weight !== 0) result[row * width + column] += weight / sizes[row];
    }
  }
  return result;
}

/** @returns {Array<[number, number]>} which keys each query may see */
function seenTokens(view, kind, layer, queries, keys) {
  if (kind === "self") {
    const start = layer * queries * 2;
    return Array.from({ length: queries }, (_, row) => [view.seen[start + 2 * row], view.seen[start + 2 * row + 1]]);
  }
  return Array.from({ length: queries }, (_, row) => [0, kind === "decoder" ? row + 1 : keys]);
}

/** The words of the keys that a word's tokens may see. */
function seenWords(seen, rows, columns) {
  const result = rows.groupLabels.map(() => [columns.groupLabels.length, 0]);
  seen.forEach(([first, after], query) => {
    const row = rows.groups[query];
    const words = row < 0 ? [] : columns.groups.slice(first, after).filter((group) => group >= 0);
    for (const word of words) result[row] = [Math.min(result[row][0], word), Math.max(result[row][1], word + 1)];
  });
  return result.map(([first, after]) => [Math.min(first, after), after]);
}

/** @returns {Picture} */
function pictureOf(view, { kind, layer, head, units, reading }) {
  const { rows, columns } = axesOf(view, kind, reading);
  const tokens = headWeights(view, kind, layer, head);
  const inWords = units === "words" && columns.groupLabels !== null;
  const visible = seenTokens(view, kind, layer, rows.labels.length, columns.labels.length);
  const weights = inWords ? betweenWords(tokens, rows, columns) : tokens;
  const rowLabels = inWords ? rows.groupLabels : rows.labels;
  const columnLabels = inWords ? columns.groupLabels : columns.labels;
  const tags = ({ groups, groupTags }) => (inWords ? groupTags : groups.map((group) => groupTags[group]));
  const width = columnLabels.length;
  const nullRows = rowLabels.map((_, row) => {
    for (let column = 0; column < width; column++) if (weights[row * width + column] !== 0) return false;
    return true;
  });
  let max = 0;
  let negative = false;
  for (const weight of weights) {
    max = Math.max(max, Math.abs(weight));
    negative ||= weight < 0;
  }
  return {
    rows: rowLabels,
    columns: columnLabels,
    rowTags: tags(rows),
    columnTags: tags(columns),
    weights,
    nullRows,
    max,
    negative,
    seen: inWords ? seenWords(visible, rows, columns) : visible,
  };
}

/** Share of the cells that a query may see whose weight is exactly 0. @param {Picture} picture */
function shareOfZeros({ columns, weights, seen }) {
  let zeros = 0;
  let cells = 0;
  seen.forEach(([first, after], row) => {
    cells += after - first;
    for (let column = first; column < after; column++) zeros += weights[row * columns.length + column] === 0;
  });
  return zeros / cells;
}

/** What the whole test set says about a head: null rate, sparsity, AER. */
function headNumbers(model, kind, layer, head, reading) {
  const numbers = models[model].kinds[kind];
  const alignment = kind === "cross" ? models[model].alignment?.[reading] : null;
  if (isMean(kind, model, head)) {
    return { null: numbers.layerNullRate[layer], sparsity: null, aer: alignment?.layers[layer] ?? null };
  }
  return {
    null: numbers.nullRate[layer][head],
    sparsity: numbers.sparsity[layer][head],
    aer: alignment?.heads[layer][head] ?? null,
  };
}
