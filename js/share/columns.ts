/**
 * A row of a table by the names in its header. A column without a name of its own has its number,
 * too: rowByNames(["A", "A"], ["x", "y", "z"]) is { A: "x", "A 2": "y", 3: "z" }.
 */
export function rowByNames<T>(names: readonly string[], cells: readonly T[]): { [name: string]: T } {
  const row = new Map<string, T>();
  cells.forEach((cell, x) => {
    const own = names[x] ?? "";
    let name = own;
    while (!name || row.has(name)) name = `${own} ${++x}`.trim();
    row.set(name, cell);
  });
  return Object.fromEntries(row);
}
