// Choose model, sentence, kind, layer and head, and see.

function makeExplorer() {
  const section = byId("explorer");
  section.replaceChildren(
    el("h2", { text: "Explorer" }),
    el("p", { class: "lead", text: "What the model looked at, sentence by sentence. A cell is empty where the weight is exactly 0; a marked row attends to nothing. Press ? for keys." }),
  );
  if (!sentences.length) {
    section.append(el("p", { class: "card muted", text: "This report was made without sentences to look at." }));
    return;
  }
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

function showExplorer() {
  keepFocus("#toolbar", showToolbar);
  byId("head-table-title").replaceChildren(modelDot(state.model), `All heads of ${models[state.model].name}, ${state.kind} attention`);
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
  controls.push(
    segmented("Attention", options(KIND_NAMES), state.kind, (kind) => update({ kind })),
    segmented("Layer", numbered(layers), state.layer, (layer) => update({ layer })),
    segmented("Head", numbered(heads, [{ value: heads, text: "mean", title: "Mean of the layer's heads" }]), state.head, (head) => update({ head })),
    segmented("Axes", options({ words: "Words", tokens: "Tokens" }), state.units, (units) => update({ units })),
  );
  if (state.kind === "cross") {
    controls.push(segmented("Reading", options({ normal: "Normal", shifted: "Shifted" }), state.reading, (reading) => update({ reading })));
  }
  const hasAlignment = state.kind === "cross" && models[state.model].alignment;
  const sorts = Object.entries(SORT_NAMES).filter(([sort]) => sort !== "aer" || hasAlignment);
  controls.push(dropDown("Sort heads by", options(Object.fromEntries(sorts)), state.sort, (sort) => update({ sort })));
  byId("toolbar").replaceChildren(...controls);
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
  const own = ["data-head", "data-value", "data-save", "data-column"].find((name) => control.hasAttribute(name));
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
  const loaded = await Promise.all(shown.map((model) => loadView(model, state.sentence)));
  if (mine !== drawing) return;
  const panes = byId("panes");
  panes.classList.toggle("two", shown.length > 1);
  shownHeatMaps.length = 0;
  byId("tooltip").hidden = true;
  const scrolled = pictureScroll();
  const side = matchMedia("(max-width: 820px)").matches ? 1 : shown.length;
  const width = (panes.clientWidth - 16 * (side - 1)) / side - 42;
  const drawn = shown.map((model, number) => drawPane(model, loaded[number], width));
  keepFocus("#panes", () => panes.replaceChildren(...drawn));
  restoreScroll(scrolled);
  showSentenceText(shown, loaded);
  if (mine === 1) performance.mark("first picture");
  document.documentElement.dataset.drawn = mine; // for tests: when to look
}

/** How far the pictures are scrolled, and which axes they have. */
function pictureScroll() {
  const axes = `${state.sentence} ${state.kind} ${state.units} ${state.other} ${state.model}`;
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

function showSentenceText(shown, loaded) {
  const { index, source, target } = sentences[state.sentence];
  const entries = [[`Source ${count(index + 1)}`, source], ["Target", target]];
  const tagged = loaded.find((view) => view?.tags);
  if (tagged) entries.push(["Tags", tagged.targetWords.map((word, number) => `${word}/${tagged.tags[number]}`).join(" ")]);
  loaded.forEach((view, number) => {
    if (view?.output) entries.push([`${models[shown[number]].name} writes`, view.output]);
  });
  byId("sentence-text").replaceChildren(
    ...entries.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text, dir: "auto" })]),
  );
}
