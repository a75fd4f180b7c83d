/**
 * Lists that are compressed in memory: a bank file of 100 MB has as many as 200,000 lines, which took 500 MB as objects.
 * Each iteration unpacks some items at a time.
 */
import { deserialize, serialize } from 'node:v8';
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** A list that can be iterated more than once, whose items need not be in memory. */
export type List<Item> = Iterable<Item> & Readonly<{ length: number }>;

export const pack = (items: readonly unknown[]) => deflateRawSync(serialize(items), { level: 1 });

const ITEMS_TOGETHER = 500;

export class PackedList<Item> implements List<Item> {
  length = 0;
  private readonly packed: Uint8Array[] = [];
  private open: Item[] = [];

  push(item: Item) {
    this.open.push(item);
    this.length += 1;
    if (this.open.length < ITEMS_TOGETHER) return;
    this.packed.push(pack(this.open));
    this.open = [];
  }

  /** Adds items that were packed before. */
  add(packed: Uint8Array, length: number) {
    this.packed.push(packed);
    this.length += length;
  }

  *[Symbol.iterator](): Generator<Item> {
    for (const each of this.packed) yield* deserialize(inflateRawSync(each)) as Item[];
    yield* this.open;
  }
}

/** A list whose items are made when it is iterated. In JSON, it is an array. */
export class ListOf<Item> implements List<Item> {
  readonly length: number;
  private readonly make: () => Iterable<Item>;

  constructor(length: number, make: () => Iterable<Item>) {
    [this.length, this.make] = [length, make];
  }

  [Symbol.iterator]() {
    return this.make()[Symbol.iterator]();
  }

  map<Other>(convert: (item: Item) => Other) {
    return new ListOf(this.length, () => mapped(this, convert));
  }

  toJSON() {
    return [...this];
  }
}

export function* mapped<Item, Other>(items: Iterable<Item>, convert: (item: Item) => Other) {
  for (const item of items) yield convert(item);
}

/** Yields the items in arrays of at most `most`. */
export function* inBatches<Item>(items: Iterable<Item>, most: number) {
  let batch: Item[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < most) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
