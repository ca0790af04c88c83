// Choose model, sentence, kind, layer and head, and see.

const MOST_BUTTONS = 17; // 16 heads and their mean

function makeExplorer() {
  const section = byId("explorer");
  section.replaceChildren(
    el("h2", { text: "Explorer" }),
    el("p", { class: "lead", text: `What the model looked at, ${UNIT} by ${UNIT}. A cell is empty where the weight is exactly 0; a marked row attends to nothing. Press ? for keys.` }),
  );
  if (!sentences.length) {
    section.append(el("p", { class: "card muted", text: withoutSentences() }));
    return;
  }
  const { place, reason } = startingPoint();
  const opening = `It opens on layer ${place.layer + 1}, head ${place.head + 1} of ${models[0].name}: the head ${reason}.`;
  section.querySelector(".lead").append(" ", el("span", { id: "opening" }, ...withTerms(opening)));
  section.append(
    el(
      "div",
      { class: "explorer-grid" },
      makeSentenceList(),
      el(
        "div",
        { class: "explorer-main" },
        el("div", { class: "card toolbar", id: "toolbar" }),
        el("dl", { class: "card sentence-text", id: "sentence-text" }),
        el("div", { id: "panes", class: "panes" }),
        el(
          "div",
          { class: "card head-table" },
          el("div", { class: "part-head" }, el("h3", { id: "head-table-title" })),
          el("div", { class: "scroll", id: "head-table" }),
        ),
      ),
    ),
  );
  fillSentenceList();
  let model = state.model;
  listeners.push(() => {
    if (state.model === model) markSentence();
    else fillSentenceList(); // its null rates are the model's
    model = state.model;
    showExplorer();
  });
}

function withoutSentences() {
  if (IS_OF_TEXTS) return `This report shows no text: none was kept, or they are too long to show (more than ${report.mostTokens} tokens, or fewer in a large model). The numbers are of all of them.`;
  return "This report was made without sentences to look at.";
}

function showExplorer() {
  keepFocus("#toolbar", showToolbar);
  byId("head-table-title").replaceChildren(modelDot(state.model), `All heads of ${models[state.model].name}, ${KIND_PHRASES[state.kind]}`);
  keepFocus("#head-table", () => byId("head-table").replaceChildren(headTable()));
  showPanes();
}

function showToolbar() {
  const { layers, heads } = models[state.model].kinds[state.kind];
  const numbered = (length, extra = []) => [...Array.from({ length }, (_, value) => ({ value, text: String(value + 1) })), ...extra];
  const options = (texts) => Object.entries(texts).map(([value, text]) => ({ value, text }));
  const controls = [];
  if (models.length > 1) {
    const names = models.map(({ name }, value) => ({ value, text: name }));
    const others = [{ value: null, text: "nothing" }, ...names.filter(({ value }) => value !== state.model)];
    controls.push(dropDown("Model", names, state.model, chooseModel));
    controls.push(dropDown("Beside it", others, state.other, (other) => update({ other })));
  }
  if (KINDS.length > 1) {
    const names = KINDS.map((value) => ({ value, text: KIND_NAMES[value] }));
    controls.push(segmented("Attention", names, state.kind, (kind) => update({ kind }), "attention"));
  }
  controls.push(
    numberChoice("Layer", numbered(layers), state.layer, (layer) => update({ layer })),
    numberChoice("Head", numbered(heads, [{ value: heads, text: "mean", title: "Mean of the layer's heads" }]), state.head, (head) => update({ head })),
  );
  if (report.hasWords) {
    controls.push(segmented("Axes", options({ words: "Words", tokens: "Tokens" }), state.units, (units) => update({ units }), "units"));
  }
  if (state.kind === "cross") {
    controls.push(segmented("Reading", options({ normal: "Normal", shifted: "Shifted" }), state.reading, (reading) => update({ reading }), "reading"));
  }
  if (hasOutputs) {
    controls.push(segmented("Translation", options({ reference: "Reference", own: "Own" }), state.text, (text) => update({ text }), "translation"));
  }
  const scales = SCALES.filter((scale) => scale !== "shared" || state.other !== null).map((value) => ({ value, text: SCALE_NAMES[value] }));
  controls.push(segmented("Colours", scales, shownScale(), (scale) => update({ scale }), "colours"));
  const hasAlignment = state.kind === "cross" && models[state.model].alignment;
  const sorts = Object.entries(SORT_NAMES).filter(([sort]) => sort !== "aer" || hasAlignment);
  controls.push(dropDown("Sort heads by", options(Object.fromEntries(sorts)), state.sort, (sort) => update({ sort })));
  byId("toolbar").replaceChildren(...controls);
}

/** Buttons, or where these would be too many a list. */
function numberChoice(label, choices, current, choose) {
  return (choices.length > MOST_BUTTONS ? dropDown : segmented)(label, choices, current, choose);
}

/** The model beside it takes the place of the one that is chosen. */
function chooseModel(model) {
  update(model === state.other ? { model, other: state.model } : { model });
}

/** Draw a part anew; the control that had the focus has it again, if it is still there. */
function keepFocus(part, draw) {
  const control = document.activeElement;
  const place = control.closest(part) ? controlPath(control, document.querySelector(part)) : null;
  draw();
  if (place) document.querySelector(`${part} ${place}`)?.focus({ preventScroll: true });
}

/** A selector that finds a control again inside its part after it was drawn anew. */
function controlPath(control, part) {
  const own = ["data-head", "data-value", "data-save", "data-column", "data-term"].find((name) => control.hasAttribute(name));
  const nearest = control.closest("[data-model], [aria-label]");
  const named = nearest && nearest !== part && part.contains(nearest) ? nearest : null;
  const attribute = (element, name) => `[${name}="${CSS.escape(element.getAttribute(name))}"]`;
  const around = named ? attribute(named, named.hasAttribute("data-model") ? "data-model" : "aria-label") : "";
  return own && named !== control ? `${around} ${attribute(control, own)}` : around;
}

/** Counts the drawings, so that one that had to wait does not overwrite a later one. */
let drawing = 0;

async function showPanes() {
  const mine = ++drawing;
  const shown = [state.model, ...(state.other === null ? [] : [state.other])];
  const references = await Promise.all(shown.map((model) => loadView(model, state.sentence)));
  const loaded = await Promise.all(shown.map((model, number) => chosenView(model, references[number])));
  if (mine !== drawing) return;
  const panes = byId("panes");
  panes.classList.toggle("two", shown.length > 1);
  shownHeatMaps.length = 0;
  byId("tooltip").hidden = true;
  const scrolled = pictureScroll();
  const side = matchMedia("(max-width: 820px)").matches ? 1 : shown.length;
  const width = (panes.clientWidth - 16 * (side - 1)) / side - 42;
  const drawn = drawPanes(shown, loaded, width);
  keepFocus("#panes", () => panes.replaceChildren(...drawn));
  restoreScroll(scrolled);
  keepFocus("#sentence-text", () => showSentenceText(shown, references));
  if (mine === 1) performance.mark("first picture");
  document.documentElement.dataset.drawn = mine; // for tests: when to look
}

/** The view of the reference, or that of the model's own translation, which may be the reference. */
async function chosenView(model, reference) {
  if (state.text === "reference" || !reference) return reference;
  const own = await loadView(model, state.sentence, "own");
  return own ?? (reference.output === sentences[state.sentence].target ? reference : null);
}

/** How far the pictures are scrolled, and which axes they have. */
function pictureScroll() {
  const axes = `${state.sentence} ${state.kind} ${state.units} ${state.other} ${state.model} ${state.text}`;
  const positions = [...byId("panes").querySelectorAll(".picture")].map(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop]);
  const last = byId("panes").dataset.axes;
  byId("panes").dataset.axes = axes;
  return last === axes ? positions : [];
}

/** Another head of a long sentence is shown at the same place. */
function restoreScroll(positions) {
  const pictures = byId("panes").querySelectorAll(".picture");
  positions.forEach(([left, top], number) => pictures[number]?.scrollTo({ left, top, behavior: "instant" }));
}
