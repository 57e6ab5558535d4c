// A box above each long table that leaves only the rows with every word typed into it.
'use strict';

const LONG = 30; // rows

function addBox(table) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const box = document.createElement('input');
  const count = document.createElement('span');
  box.type = 'search';
  box.placeholder = 'search: qwen3 runs';
  box.setAttribute('aria-label', 'search this table');
  count.setAttribute('role', 'status');

  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = `${shown} of ${rows.length} rows`;
  }

  const line = document.createElement('div');
  line.className = 'table-search';
  line.append(box, count);
  table.classList.add('long');
  (table.closest('.table-wrapper') ?? table).before(line);
  box.addEventListener('input', show);
  show();
}

document.addEventListener('DOMContentLoaded', () => {
  for (const table of document.querySelectorAll('article table')) {
    if (table.tBodies[0]?.rows.length > LONG) addBox(table);
  }
});
