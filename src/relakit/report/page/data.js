// What the file holds: numbers of the models, and sentences that are unpacked when they are shown.

const report = JSON.parse(byId("report-data").textContent);
const models = report.models;
const sentences = report.sentences;

/** The kinds of attention that the models have: encoder, decoder and cross, or self alone if they read texts. */
const KINDS = report.kinds;
/** The kind that is asked for first. */
const MAIN_KIND = KINDS.at(-1);
const IS_OF_TEXTS = MAIN_KIND === "self";
const READINGS = ["normal", "shifted"];
const KIND_NAMES = { encoder: "Encoder", decoder: "Decoder", cross: "Cross", self: "Self-attention" };
const KIND_PHRASES = { encoder: "encoder attention", decoder: "decoder attention", cross: "cross attention", self: "self-attention" };
/** What the models read one at a time. */
const UNIT = IS_OF_TEXTS ? "text" : "sentence";

const REMEMBERED_VIEWS = 32;
/** @type {Map<string, Promise<View|null>>} the views last shown, the latest last */
const views = new Map();

/**
 * One model's attention on one sentence.
 * @typedef {Object} View
 * @property {string[]} sourceWords
 * @property {string[]} targetWords
 * @property {string[]} sourceTokens
 * @property {string[]} targetTokens
 * @property {number[]} sourceTokenWords the word of each token, -1 for none
 * @property {number[]} targetTokenWords
 * @property {{sure: number[][], possible: number[][]}|null} gold links [source word, target word]
 * @property {string|null} output what the model wrote itself
 * @property {Array<[string, string]>|null} difference the output in pieces: same, added, or missing from it
 * @property {string[]|null} tags
 * @property {Object<string, {shape: number[], scales: Float32Array, levels: Uint8Array|Int8Array,
 *   steps: number}>} kinds a weight is level / steps * scale of its head
 * @property {Int16Array} [seen] of a text [layers * tokens * 2]: the first token that one may attend to, and
 *   the one after the last. The text is the source; its words are null if they are not known
 * @property {Int16Array} [links] [readings * layers * (heads + 1) * target words]: the source word that
 *   a target word is linked to, from exact weights; -1 for none. The mean of heads is the last head
 */

/**
 * @param {"view"|"own"} text made to write the reference, or its own translation
 * @returns {Promise<View|null>} null where the model has no view of the sentence
 */
function loadView(model, sentence, text = "view") {
  const id = `${text}-${model}-${sentences[sentence].index}`;
  let view = views.get(id);
  views.delete(id);
  view ??= unpack(byId(id));
  views.set(id, view);
  if (views.size > REMEMBERED_VIEWS) views.delete(views.keys().next().value);
  return view;
}

/** @returns {Promise<ArrayBuffer>} what an element holds */
async function inflate(element) {
  const packed = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

async function unpack(element) {
  if (!element) return null;
  const content = await inflate(element);
  const headerSize = new DataView(content).getUint32(0, true);
  let place = 4 + headerSize;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 4, headerSize)));
  const kinds = {};
  for (const kind of KINDS) {
    const shape = header.shapes[kind];
    const heads = shape[0] * shape[1];
    kinds[kind] = { shape, scales: new Float32Array(content, place, heads) };
    place += 4 * heads;
  }
  const [layers, heads, queries] = header.shapes[MAIN_KIND];
  const size = IS_OF_TEXTS ? layers * queries * 2 : READINGS.length * layers * (heads + 1) * header.targetWords.length;
  const numbers = new Int16Array(content, place, size);
  place += numbers.byteLength;
  for (const kind of KINDS) {
    const size = kinds[kind].shape.reduce((product, length) => product * length, 1);
    const isSigned = header.signed[kind];
    kinds[kind].levels = new (isSigned ? Int8Array : Uint8Array)(content, place, size);
    kinds[kind].steps = isSigned ? 127 : 255;
    place += size;
  }
  return { ...header, kinds, [IS_OF_TEXTS ? "seen" : "links"]: numbers };
}
