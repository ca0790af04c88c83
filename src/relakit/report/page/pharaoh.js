// The links of a head as a file: a line for each pair, "0-0 1-2", source word first, both from 0.

/** Whether the file holds the links of all pairs, or only those of the sentences that it shows. */
function hasAllLinks(model) {
  return byId(`links-${model}`) !== null;
}

/** @returns {Promise<string[]>} a line for each pair of the test set; blank where the file has no links */
async function pharaohLines(model, layer, head, reading) {
  const links = hasAllLinks(model) ? await allLinks(model, layer, head, reading) : await shownLinks(model, layer, head, reading);
  return Array.from({ length: models[model].pairs }, (_, pair) =>
    Array.from(links.get(pair) ?? [], (source, target) => (source < 0 ? null : `${source}-${target}`)).filter(Boolean).join(" "),
  );
}

/** @returns {Promise<Map<number, Int16Array>>} by pair, the source word of each target word, or -1 */
async function allLinks(model, layer, head, reading) {
  const content = await inflate(byId(`links-${model}`));
  const [pairs] = new Int32Array(content, 0, 1);
  const sizes = new Int32Array(content, 4, pairs);
  const words = sizes.reduce((sum, size) => sum + size, 0);
  const { layers, heads } = models[model].kinds.cross;
  const place = (READINGS.indexOf(reading) * layers + layer) * (heads + 1) + head;
  const links = new Int16Array(content, 4 * (pairs + 1) + 2 * place * words, words);
  let start = 0;
  return new Map(Array.from(sizes, (size, pair) => [pair, links.subarray(start, (start += size))]));
}

async function shownLinks(model, layer, head, reading) {
  const links = new Map();
  for (const { index } of sentences) {
    const view = await unpack(byId(`view-${model}-${index}`)); // not kept: there may be hundreds
    if (view) links.set(index, wordLinks(view, layer, head, reading));
  }
  return links;
}

/** A button that saves the links of the shown head for the whole test set. */
function pharaohButton(model) {
  const { pairs } = models[model];
  const isWhole = hasAllLinks(model) || sentences.length === pairs;
  const title = isWhole
    ? `Links of this head in all ${count(pairs)} pairs, a line for each: source-target, from 0`
    : `Links of this head in the ${count(sentences.length)} pairs of this page; the other ${count(pairs - sentences.length)} lines are blank`;
  const save = async () => {
    const { layer, head, reading } = shownHead(model);
    const lines = await pharaohLines(model, layer, head, reading);
    const part = isWhole ? [] : [sentences.length, "of", pairs];
    const name = fileName(models[model].name, "layer", layer + 1, headName("cross", model, head), reading, ...part);
    saveBlob(new Blob(lines.map((line) => `${line}\n`), { type: "text/plain" }), `${name}.pharaoh`);
  };
  return el("button", { type: "button", class: "action", "data-save": "links-Pharaoh", text: "Save Pharaoh", title, click: save });
}
