// Tables that a click on a column's head sorts.

/**
 * @typedef {Object} Column
 * @property {string} name
 * @property {(row: any) => (number|string|null)} value
 * @property {(value: any) => string} [text]
 * @property {boolean} [words] aligned left
 * @property {boolean} [heat] tinted by the value, a share from 0 to 1
 * @property {boolean} [tint] tinted by the value, positive or negative
 * @property {(row: any) => boolean} [mark] whether it is the best of its column
 * @property {(row: any) => Node} [cell] what is shown, in place of text
 * @property {string} [title]
 * @property {string} [term] of the glossary, in place of a title
 */

/** Which column sorts a table, by the table's name, so that drawing again keeps it. */
const sortings = new Map();

/**
 * @param {string} name
 * @param {Column[]} columns
 * @param {any[]} rows
 * @param {{caption?: string, row?: (row: any) => Object<string, any>, detail?: (row: any) => Node}} [options] properties
 *   of rows; what a row tells when it is opened
 */
function sortableTable(name, columns, rows, { caption, row: properties, detail } = {}) {
  const sorting = sortings.get(name);
  const by = sorting && columns.find((column) => column.name === sorting.column);
  const sorted = by ? [...rows].sort(comparing(by.value, sorting.falling)) : rows;
  const table = el("table", { "data-table": name });
  const sortBy = (column) => {
    const current = sortings.get(name);
    sortings.set(name, { column, falling: current?.column === column && !current.falling });
    const again = sortableTable(name, columns, rows, { caption, row: properties, detail });
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
    el("thead", {}, el("tr", {}, detail ? el("th", { scope: "col" }, el("span", { class: "unseen", text: "more" })) : null, ...heads)),
    el("tbody", {}, ...sorted.flatMap((row) => tableRows(columns, row, properties?.(row) ?? {}, detail))),
  );
  return table;
}

/** A row, and if it can be opened, the one below it with the rest. */
function tableRows(columns, row, properties, detail) {
  const cells = columns.map((column) => tableCell(column, row));
  if (!detail) return [el("tr", properties, ...cells)];
  const rest = el("tr", { class: "detail", hidden: true });
  const toggle = el("button", {
    type: "button",
    class: "toggle",
    text: "▸",
    "aria-expanded": "false",
    "aria-label": "All scores",
    click: () => {
      if (!rest.hasChildNodes()) rest.append(el("td", { colspan: columns.length + 1 }, detail(row)));
      rest.hidden = !rest.hidden;
      toggle.textContent = rest.hidden ? "▸" : "▾";
      toggle.setAttribute("aria-expanded", String(!rest.hidden));
    },
  });
  return [el("tr", properties, el("td", {}, toggle), ...cells), rest];
}

function tableCell(column, row) {
  const value = column.value(row);
  const kinds = [column.words ? "words" : null, column.mark?.(row) ? "best" : null].filter(Boolean).join(" ");
  const cell = el("td", { class: kinds || null });
  if (column.cell) cell.append(column.cell(row));
  else cell.textContent = column.text ? column.text(value) : String(value ?? NOTHING);
  if (column.tint && value) {
    const share = Math.round(45 * Math.min(1, Math.abs(value) / 4));
    cell.style.background = `color-mix(in srgb, var(${value > 0 ? "--null" : "--accent"}) ${share}%, transparent)`;
  }
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
