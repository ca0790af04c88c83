// Tables 4 to 6 of the paper, null rates by class, and all heads; of texts, those that they have.

function showTables() {
  const parts = [alignmentTable(), diversityTable(), flopsTable()].filter(Boolean);
  const cards = parts.map((table) => tableCard(table, ""));
  if (IS_OF_TEXTS) cards.unshift(tableCard(layerTable(), "wide"));
  byId("tables").replaceChildren(
    el("h2", { text: "Tables" }),
    el("p", { class: "lead", text: "A click on a column's head sorts by it, a second click the other way." }),
    el("div", { class: "table-grid" }, ...cards, ...(IS_OF_TEXTS ? [] : [classCard()])),
  );
}

function tableCard(table, style) {
  return el("div", { class: `card ${style}` }, el("div", { class: "scroll" }, table));
}

const modelColumn = { name: "Model", value: (row) => row.model, words: true };

function alignmentTable() {
  const rows = models.filter(({ alignment }) => alignment).map(({ name, alignment }) => ({ model: name, alignment }));
  if (!rows.length) return null;
  const columns = READINGS.flatMap((reading) => [
    { name: `${reading} AoL`, value: ({ alignment }) => alignment[reading].aol, text: (value) => fixed(value, 3), term: "aol" },
    { name: `${reading} AoH`, value: ({ alignment }) => alignment[reading].aoh, text: (value) => fixed(value, 3), term: "aoh" },
  ]);
  const caption = "Table 5. Alignment error rate, averaged over layers: of the layer's mean attention (AoL) and of its best head (AoH).";
  return sortableTable("alignment", [modelColumn, ...columns], rows, { caption });
}

/** All numbers by layer, where there is one kind of attention. */
function layerTable() {
  const rows = models.flatMap(({ name, kinds }) => Array.from({ length: kinds.self.layers }, (_, layer) => ({ model: name, layer, numbers: kinds.self })));
  const share = (name, term, value) => ({ name, term, value, text: (number) => percent(number), heat: true });
  const columns = [
    placeColumns[0],
    share("Sparsity", "sparsity", ({ numbers, layer }) => mean(numbers.sparsity[layer])),
    share("Null rate", "null", ({ numbers, layer }) => mean(numbers.nullRate[layer])),
    share("Null in all heads", "null", ({ numbers, layer }) => numbers.layerNullRate[layer]),
    share("First sink", "sink", ({ numbers, layer }) => mean(numbers.firstSink[layer])),
    { name: "Diversity", term: "diversity", value: ({ numbers, layer }) => numbers.diversity[numbers.temperature]?.[layer] ?? null, text: (value) => fixed(value) },
  ];
  if (models.some(({ kinds }) => kinds.self.outputRms)) {
    columns.push({ name: "RMS(z)", term: "rms", value: ({ numbers, layer }) => numbers.outputRms?.[layer] ?? null, text: (value) => fixed(value) });
  }
  if (models.some(({ kinds }) => kinds.self.closedGates)) {
    columns.push(share("Closed gates", "gates", ({ numbers, layer }) => numbers.closedGates?.[layer] ?? null));
  }
  const caption = `By layer: means over heads; head diversity in nats, ${report.diversityTemperatures}. All heads are in a table of the explorer.`;
  return sortableTable("layers", [modelColumn, ...columns], rows, { caption });
}

function diversityTable() {
  const rows = models.flatMap(({ name, kinds }) => {
    const temperatures = new Set(KINDS.flatMap((kind) => Object.keys(kinds[kind].diversity)));
    return [...temperatures].sort((a, b) => b - a).map((temperature) => ({ model: name, kinds, temperature }));
  });
  const columns = KINDS.map((kind) => ({
    name: KIND_NAMES[kind],
    value: ({ kinds, temperature }) => mean(kinds[kind].diversity[temperature] ?? []),
    text: (value) => fixed(value),
  }));
  const temperature = { name: "τ", term: "temperature", value: (row) => Number(row.temperature) };
  const caption = `${IS_OF_TEXTS ? "" : "Table 6. "}Head diversity by temperature τ, averaged over layers, in nats.`;
  return sortableTable("diversity", [modelColumn, temperature, ...columns], rows, { caption });
}

function flopsTable() {
  const rows = models.flatMap(({ name, flops }) => flops.map((counts) => ({ model: name, ...counts })));
  if (!rows.length) return null;
  const columns = [
    { name: "Length", value: ({ length }) => length, text: count },
    { name: "softmax", value: ({ softmax }) => softmax, text: count },
    { name: "ReLA-g", value: ({ rela_g }) => rela_g, text: count },
  ];
  const caption = "Table 4. Operations of the attention function (without the products with keys and values) for the model's size.";
  return sortableTable("flops", [modelColumn, ...columns], rows, { caption });
}

/** Null rates by the class of the word before; the heads of one model at a time. */
function classCard() {
  const holder = el("div", { class: "card wide" });
  const show = (model) => {
    const { classes } = models[model];
    const rows = classes.null_rate.flatMap((layer, number) => layer.map((rates, head) => ({ layer: number, head, rates })));
    const columns = classes.classes.map((name, number) => ({
      name,
      title: `${count(classes.counts[number])} queries`,
      value: ({ rates }) => rates[number],
      text: (value) => percent(value, 0),
      heat: true,
    }));
    const origin = classes.origin === "tags" ? "tag" : "class";
    const caption = `Cross-attention null rate by the ${origin} of the target word that was just written: which words wake a head.`;
    const choice = models.length > 1
      ? segmented("Model", models.map(({ name }, value) => ({ value, text: name })), model, show)
      : null;
    const table = sortableTable("classes", [...placeColumns, ...columns], rows, { caption });
    holder.replaceChildren(...(choice ? [el("div", { class: "part-head" }, choice)] : []), el("div", { class: "scroll" }, table));
  };
  show(0);
  return holder;
}

const placeColumns = [
  { name: "Layer", value: (row) => row.layer, text: (value) => String(value + 1) },
  { name: "Head", value: (row) => row.head, text: (value) => String(value + 1) },
];

/** Every head of the shown model and kind; a click shows it. */
function headTable() {
  const { model, kind } = state;
  const { kinds, alignment, clarity } = models[model];
  const numbers = kinds[kind];
  const rows = numbers.nullRate.flatMap((heads, layer) => heads.map((_, head) => ({ layer, head })));
  const shareColumn = (name, table, term) => ({
    name,
    term,
    value: ({ layer, head }) => table[layer][head],
    text: (value) => percent(value),
    heat: true,
  });
  const columns = [
    ...placeColumns,
    shareColumn("Null rate", numbers.nullRate, "null"),
    shareColumn("Sparsity", numbers.sparsity, "sparsity"),
    shareColumn("First sink", numbers.firstSink, "sink"),
  ];
  if (numbers.endSink) columns.push(shareColumn(IS_OF_TEXTS ? "Last sink" : "End sink", numbers.endSink, "sink"));
  if (kind === MAIN_KIND && clarity) {
    columns.push({ name: "Clarity", term: "clarity", value: ({ layer, head }) => clarity[layer][head], text: (value) => fixed(value), heat: true });
  }
  if (kind === "cross" && alignment) {
    for (const reading of READINGS) {
      columns.push({
        name: `AER ${reading}`,
        term: "aer",
        value: ({ layer, head }) => alignment[reading].heads[layer][head],
        text: (value) => fixed(value),
      });
    }
  }
  const select = (row) => ({
    "data-head": `${row.layer}-${row.head}`,
    tabindex: 0,
    "aria-current": row.layer === state.layer && row.head === state.head ? "true" : null,
    click: () => update(row),
    keydown: (event) => {
      if (event.key === "Enter") update(row);
    },
  });
  return sortableTable("heads", columns, rows, { row: select });
}
