/** Asks both verifiers about packs that a test builds; their answers must be the same. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { needs } from '../support/tools.ts';
import { type Answer, openVerifiers } from '../support/verifiers.ts';
import { CHECKS, LINES, LOG_KEY, noteOf, type PackPlan, plan, sizeAfter, writePack } from './log-pack.ts';

export const KEY = ['--key', LOG_KEY.vkey];
export const JULY = sizeAfter('2026-07');
export const AUGUST = sizeAfter('2026-08');

/** A folder of packs, and the verifiers. Paths in answers are relative to the folder. */
export class Packs {
  readonly folder = mkdtempSync(join(tmpdir(), 'log-verifiers-'));
  private readonly verifiers = openVerifiers();
  private packs = 0;

  constructor() {
    this.write('checks.sql', CHECKS);
  }

  end(): void {
    this.verifiers.end();
    rmSync(this.folder, { recursive: true });
  }

  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  pack(changes: Partial<PackPlan> = {}): string {
    this.packs += 1;
    return writePack(join(this.folder, `pack-${this.packs}`), plan(changes));
  }

  july = (): string => this.pack({ size: JULY, months: ['2026-07', '2026-07'] });

  august = (changes: Partial<PackPlan> = {}): string =>
    this.pack({
      first: JULY,
      size: AUGUST,
      months: ['2026-08', '2026-08'],
      checkpoints: [2, 3, JULY, AUGUST],
      data: ['ledger.csv'],
      ...changes,
    });

  /** The arguments for a checkpoint that the auditor holds. */
  held = (size: number, lines = LINES): string[] => ['--held', this.write(`held-${size}`, noteOf(lines, size))];

  async verify(...args: string[]): Promise<Answer> {
    needs('python3');
    needs('sqlite3');
    const all = [...args, '--checks', join(this.folder, 'checks.sql')];
    const [python, node] = await Promise.all([this.verifiers.ask('python3', all), this.verifiers.ask('node', all)]);
    expect(node).toEqual(python);
    return { status: python.status, output: python.output.replaceAll(`${this.folder}/`, '') };
  }
}
