// Light and dark: as the system says, until the button is pressed.

const systemDark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;

function themeName() {
  return chosenTheme ?? (systemDark.matches ? "dark" : "light");
}

function applyTheme() {
  document.documentElement.dataset.theme = themeName();
  const other = themeName() === "dark" ? "light" : "dark";
  const button = byId("theme-button");
  button.textContent = themeName() === "dark" ? "☀" : "☾";
  button.title = `Show in ${other} colours`;
  button.setAttribute("aria-label", button.title);
}

function toggleTheme() {
  chosenTheme = themeName() === "dark" ? "light" : "dark";
  applyTheme();
  notify();
}

/** The value of one of theme.css's variables. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const SCALE_STEPS = 64;

/**
 * Colours of weights from just above 0 to the largest, in equal steps.
 * @returns {number[][]} red, green, blue
 */
function attentionScale() {
  return ramp([colour("attention-low"), colour("attention-middle"), colour("attention-high")]);
}

function negativeScale() {
  return ramp([colour("surface"), colour("negative")]).map((_, step, all) => all[Math.max(step, 8)]);
}

function ramp(stops) {
  const colours = stops.map((stop) => [1, 3, 5].map((start) => parseInt(stop.slice(start, start + 2), 16)));
  return Array.from({ length: SCALE_STEPS }, (_, step) => {
    const place = (step / (SCALE_STEPS - 1)) * (colours.length - 1);
    const before = Math.min(Math.floor(place), colours.length - 2);
    const share = place - before;
    return colours[before].map((from, channel) => Math.round(from + share * (colours[before + 1][channel] - from)));
  });
}

/** The colour of a weight that is not 0, by its shade from -1 to 1. */
function scaleColour(scales, shade) {
  const scale = shade < 0 ? scales.negative : scales.positive;
  return scale[Math.min(SCALE_STEPS - 1, Math.floor(Math.abs(shade) * SCALE_STEPS))];
}

function currentScales() {
  return { positive: attentionScale(), negative: negativeScale() };
}
