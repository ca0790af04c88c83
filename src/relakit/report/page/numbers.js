// Numbers as text. They are rounded here and nowhere else.

const NOTHING = "–";

/** A share as percentage: 0.1234 is "12.3 %". @param {number|null} share */
function percent(share, digits = 1) {
  return share === null || share === undefined ? NOTHING : `${(100 * share).toFixed(digits)} %`;
}

/** A number with fixed digits behind the point. @param {number|null} value */
function fixed(value, digits = 2) {
  return value === null || value === undefined ? NOTHING : value.toFixed(digits);
}

/** A weight with three significant digits; 0 only if it is exactly 0. */
function weightText(weight) {
  if (weight === 0) return "0";
  const size = Math.abs(weight);
  return size < 0.001 || size >= 10000 ? weight.toExponential(1) : String(Number(weight.toPrecision(3)));
}

/** A whole number with separators. */
function count(value) {
  return value.toLocaleString("en-GB");
}

/** "+1.2" or "−1.2". */
function signed(value, digits = 1) {
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return `±${text}`;
  return (value < 0 ? "−" : "+") + text;
}

/** The mean of the values that are there. @param {Array<number|null>} values */
function mean(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/** Numbers for an axis from 0 (or below) to at least `high`: few and round. */
function axisTicks(low, high, wanted = 4) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => span / size <= wanted);
  const ticks = [];
  for (let number = Math.floor(low / step + 1e-9); number <= Math.ceil(high / step - 1e-9); number++) {
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}
