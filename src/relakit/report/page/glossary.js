// What the words mean: shown beside a term that is pointed at, focused or tapped, and as a list in the settings.

const TERM_OF_PHRASE = new Map(
  Object.entries(GLOSSARY).flatMap(([key, { phrases }]) => (phrases ?? []).map((phrase) => [phrase.toLowerCase(), key])),
);

/** Finds phrases, the longest first, as whole words. */
const PHRASES = new RegExp(
  `(?<![\\p{L}\\p{N}])(?:${[...TERM_OF_PHRASE.keys()]
    .sort((a, b) => b.length - a.length)
    .map((phrase) => phrase.replace(/[()]/g, "\\$&"))
    .join("|")})(?![\\p{L}\\p{N}])`,
  "giu",
);

/** Attributes of a control that explains itself, such as the head of a column. */
function explained(key) {
  return key ? { "data-term": key, "aria-describedby": `term-${key}` } : {};
}

/** A word with its explanation. @returns {HTMLElement} */
function term(key, text = GLOSSARY[key].name) {
  return el("button", { type: "button", class: "term", text, ...explained(key) });
}

/** The text, with each term explained where it first stands. @returns {Array<Node|string>} */
function withTerms(text) {
  const seen = new Set();
  const parts = [];
  let place = 0;
  for (const { 0: phrase, index } of text.matchAll(PHRASES)) {
    const key = TERM_OF_PHRASE.get(phrase.toLowerCase());
    if (seen.has(key)) continue;
    seen.add(key);
    parts.push(text.slice(place, index), term(key, phrase));
    place = index + phrase.length;
  }
  return [...parts, text.slice(place)];
}

/** All of them, for those who look for one; the terms are described by its entries. */
function glossaryList() {
  const entries = Object.entries(GLOSSARY).flatMap(([key, { name, text }]) => [
    el("dt", { text: name }),
    el("dd", { id: `term-${key}`, text }),
  ]);
  return el("dl", {}, ...entries);
}

/** The term whose explanation is shown. @type {HTMLElement|null} */
let explainedTerm = null;

function explain(element) {
  const box = byId("explanation");
  explainedTerm = element;
  box.hidden = !element;
  if (!element) return;
  const { name, text } = GLOSSARY[element.dataset.term];
  box.replaceChildren(el("strong", { text: name }), el("br"), text);
  placeExplanation();
}

/** Below the term, or above it where there is no room. */
function placeExplanation() {
  if (!explainedTerm?.isConnected) return explainedTerm && explain(null);
  const box = byId("explanation");
  const { left, top, bottom } = explainedTerm.getBoundingClientRect();
  const fits = bottom + 6 + box.offsetHeight < innerHeight;
  box.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${fits ? bottom + 6 : Math.max(4, top - box.offsetHeight - 6)}px`;
}

/** Pointing, focus and tapping all explain; Escape, or anything else, ends it. */
function listenToTerms() {
  const termAt = (target) => (target instanceof Element ? target.closest("[data-term]") : null);
  const isInside = (target) => target instanceof Node && byId("explanation").contains(target);
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    const found = termAt(target);
    if (found && pointerType !== "touch") explain(found);
  });
  document.addEventListener("pointerout", ({ target, relatedTarget, pointerType }) => {
    if (pointerType === "touch" || !explainedTerm) return;
    const leaves = termAt(target) || isInside(target);
    if (leaves && !isInside(relatedTarget) && termAt(relatedTarget) !== explainedTerm) explain(termAt(document.activeElement));
  });
  document.addEventListener("focusin", ({ target }) => explain(termAt(target)));
  document.addEventListener("focusout", ({ relatedTarget }) => {
    if (!termAt(relatedTarget) && !isInside(relatedTarget)) explain(null);
  });
  document.addEventListener("click", ({ target }) => {
    if (isInside(target)) return;
    const found = termAt(target);
    explain(found?.isConnected ? found : termAt(document.activeElement)); // a sorted table is a new one
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") explain(null);
  });
  addEventListener("scroll", placeExplanation, { capture: true, passive: true });
}
