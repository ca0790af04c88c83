// Tables that a click on a column's head sorts.

/**
 * @typedef {Object} Column
 * @property {string} name
 * @property {(row: any) => (number|string|null)} value
 * @property {(value: any) => string} [text]
 * @property {boolean} [words] aligned left
 * @property {boolean} [heat] tinted by the value, a share from 0 to 1
 * @property {string} [title]
 * @property {string} [term] of the glossary, in place of a title
 */

/** Which column sorts a table, by the table's name, so that drawing again keeps it. */
const sortings = new Map();

/**
 * @param {string} name
 * @param {Column[]} columns
 * @param {any[]} rows
 * @param {{caption?: string, row?: (row: any) => Object<string, any>}} [options] properties of rows
 */
function sortableTable(name, columns, rows, { caption, row: properties } = {}) {
  const sorting = sortings.get(name);
  const by = sorting && columns.find((column) => column.name === sorting.column);
  const sorted = by ? [...rows].sort(comparing(by.value, sorting.falling)) : rows;
  const table = el("table", { "data-table": name });
  const sortBy = (column) => {
    const current = sortings.get(name);
    sortings.set(name, { column, falling: current?.column === column && !current.falling });
    const again = sortableTable(name, columns, rows, { caption, row: properties });
    table.replaceWith(again);
    [...again.querySelectorAll("thead button")].find((button) => button.dataset.column === column).focus();
  };
  const heads = columns.map((column) => {
    const isSorting = by === column;
    const arrow = isSorting ? (sorting.falling ? " ↓" : " ↑") : "";
    return el(
      "th",
      { scope: "col", class: column.words ? "words" : null, "aria-sort": isSorting ? (sorting.falling ? "descending" : "ascending") : null },
      el("button", { type: "button", "data-column": column.name, title: column.title, ...explained(column.term), text: column.name + arrow, click: () => sortBy(column.name) }),
    );
  });
  table.append(
    ...(caption ? [el("caption", {}, ...withTerms(caption))] : []),
    el("thead", {}, el("tr", {}, ...heads)),
    el("tbody", {}, ...sorted.map((row) => el("tr", properties?.(row) ?? {}, ...columns.map((column) => tableCell(column, row))))),
  );
  return table;
}

function tableCell(column, row) {
  const value = column.value(row);
  const text = column.text ? column.text(value) : String(value ?? NOTHING);
  const cell = el("td", { class: column.words ? "words" : null, text });
  if (column.heat && value !== null) {
    const share = Math.round(55 * Math.min(1, Math.max(0, value)));
    cell.style.background = `color-mix(in srgb, var(--accent) ${share}%, transparent)`;
  }
  return cell;
}

/** Rows without a value come last in either direction. */
function comparing(value, falling) {
  return (a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return (left === null) - (right === null);
    const order = typeof left === "string" ? left.localeCompare(right) : left - right;
    return falling ? -order : order;
  };
}
