/** Words for people. */

/** `1 row`, `2 rows`, `1,234 rows`; `1 entry`, `2 entries` with the plural given. */
export function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? noun : nouns}`;
}
