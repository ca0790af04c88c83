// Everything in the explorer can be reached without a mouse.

const KEYS = [
  [["←", "→"], "head before, next head"],
  [["↑", "↓"], "layer before, next layer"],
  [["k", "j"], `${UNIT} before, next ${UNIT} (also Page Up, Page Down)`],
  ...(IS_OF_TEXTS ? [] : [[["e", "d", "c"], "encoder, decoder, cross attention"]]),
  [["m"], "next model"],
  [["b"], "another model beside it, or none"],
  [["w"], "words or tokens on the axes"],
  ...(IS_OF_TEXTS ? [] : [[["s"], "normal or shifted reading"], [["o"], "attention to the reference, or to the model's own translation"]]),
  [["v"], "next scale of colours"],
  [["Shift + arrows"], "from cell to cell"],
  [["t"], "light or dark"],
  [["/"], `search ${UNIT}s`],
  [["?"], "this help"],
];

function makeHelp() {
  const dialog = byId("help");
  const entries = KEYS.flatMap(([keys, text]) => [
    el("dt", {}, ...keys.flatMap((key, number) => [number ? " " : "", el("kbd", { text: key })])),
    el("dd", { text }),
  ]);
  dialog.replaceChildren(
    el("h2", { id: "help-title", text: "Keys" }),
    el("dl", {}, ...entries),
    el("button", { type: "button", class: "action", text: "Close", click: () => dialog.close() }),
  );
  byId("help-button").addEventListener("click", () => dialog.showModal());
}

function moveHead(by) {
  const order = headOrder(state.model);
  const place = order.indexOf(state.head);
  update({ head: order[(place + by + order.length) % order.length] });
}

function moveLayer(by) {
  const { layers } = models[state.model].kinds[state.kind];
  update({ layer: (state.layer + by + layers) % layers });
}

function chooseKind(kind) {
  if (KINDS.includes(kind)) update({ kind });
}

/** None, then each of the other models. */
function nextBeside() {
  const choices = [null, ...models.keys()].filter((model) => model !== state.model);
  update({ other: choices[(choices.indexOf(state.other) + 1) % choices.length] });
}

function nextScale() {
  const choices = SCALES.filter((scale) => scale !== "shared" || state.other !== null);
  update({ scale: choices[(choices.indexOf(shownScale()) + 1) % choices.length] });
}

const COMMANDS = {
  ArrowLeft: () => moveHead(-1),
  ArrowRight: () => moveHead(1),
  ArrowUp: () => moveLayer(-1),
  ArrowDown: () => moveLayer(1),
  j: () => moveSentence(1),
  k: () => moveSentence(-1),
  PageDown: () => moveSentence(1),
  PageUp: () => moveSentence(-1),
  e: () => chooseKind("encoder"),
  d: () => chooseKind("decoder"),
  c: () => chooseKind("cross"),
  m: () => chooseModel((state.model + 1) % models.length),
  b: nextBeside,
  w: () => update({ units: state.units === "words" ? "tokens" : "words" }),
  s: () => !IS_OF_TEXTS && update({ reading: state.reading === "normal" ? "shifted" : "normal" }),
  o: () => hasOutputs && update({ text: state.text === "reference" ? "own" : "reference" }),
  v: nextScale,
  t: toggleTheme,
  "/": () => byId("explorer").querySelector("input").focus(),
  "?": () => byId("help").showModal(),
};

const CELL_COMMANDS = {
  ArrowLeft: () => moveCell(0, -1),
  ArrowRight: () => moveCell(0, 1),
  ArrowUp: () => moveCell(-1, 0),
  ArrowDown: () => moveCell(1, 0),
};

/** Keys that scroll a page; they are the explorer's only while it can be seen. */
const SCROLLING = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown"];

function explorerIsSeen() {
  const { top, bottom } = byId("explorer").getBoundingClientRect();
  return top < innerHeight * 0.8 && bottom > innerHeight * 0.2;
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || byId("help").open) return;
    const writing = event.target.matches("input, select, textarea");
    if (writing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const command = (event.shiftKey && CELL_COMMANDS[event.key]) || COMMANDS[event.key];
    if (!command || (!sentences.length && !["t", "?"].includes(event.key))) return;
    if (SCROLLING.includes(event.key) && !explorerIsSeen()) return;
    event.preventDefault();
    command();
  });
}
