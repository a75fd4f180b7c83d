/** Amounts of money, months and days, and the texts that people read of values. */
export * from './money.ts';
export * from './month.ts';
export * from './text.ts';
