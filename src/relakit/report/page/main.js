// Put the page together.

function showTitle() {
  byId("title").textContent = report.title;
  const { pairs, sourceTokens, targetTokens } = models[0];
  const names = models.flatMap(({ name }, number) => [modelDot(number), `${name}\u2003`]);
  const ofTexts = `${count(pairs)} ${pairs === 1 ? "text" : "texts"}, ${count(sourceTokens)} tokens`;
  const ofPairs = () => `${count(pairs)} sentence ${pairs === 1 ? "pair" : "pairs"}, ${count(sourceTokens)} source and ${count(targetTokens)} target tokens`;
  const size = IS_OF_TEXTS ? ofTexts : ofPairs();
  byId("summary").replaceChildren(...names, size);
}

function listenToPage() {
  byId("theme-button").addEventListener("click", toggleTheme);
  systemDark.addEventListener("change", () => {
    applyTheme();
    notify();
  });
  for (const button of document.querySelectorAll("[data-section]")) {
    // No links: the address is the explorer's.
    button.addEventListener("click", () => {
      byId(button.dataset.section).scrollIntoView();
      byId(button.dataset.section).focus({ preventScroll: true });
    });
  }
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("explorer").focus();
  });
  addEventListener("hashchange", readAddress);
  let resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(notify, 150);
  });
  // Paper is light.
  let before = null;
  addEventListener("beforeprint", () => {
    before = chosenTheme;
    chosenTheme = "light";
    applyTheme();
    notify();
  });
  addEventListener("afterprint", () => {
    chosenTheme = before;
    applyTheme();
    notify();
  });
}

const isLinkedTo = location.hash.length > 1 && performance.getEntriesByType("navigation")[0]?.type === "navigate";

applyTheme();
showTitle();
showOverview();
makeHelp();
makeExplorer();
showFigures();
showTables();
showSettings();
Object.assign(state, startingPoint().place);
readAddress();
// Who follows an address to a picture wants to see it; who reloads stays where they were.
if (isLinkedTo) byId("explorer").scrollIntoView({ behavior: "instant" });
listenToKeys();
listenToTerms();
listenToPage();
