/** The issuer's logo as the settings name it: known by its content, and refused with the reason where it can be none. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readEnvironment } from '../src/config/environment.ts';
import { firstSettings } from '../src/config/first-settings.ts';
import { readLogo } from '../src/config/logo.ts';
import { readSettings } from '../src/config/settings.ts';
import { Refusal } from '../src/errors/refusals.ts';
import { jpeg, png, pngLogo } from './support/logos.ts';

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'logo-'));
  mkdirSync(join(home, 'pictures'));
});
afterAll(() => rmSync(home, { recursive: true }));

function settingsWith(logo: string) {
  const first = firstSettings('sandbox');
  writeFileSync(join(home, 'settings.json'), JSON.stringify({ ...first, issuer: { ...first.issuer, logo } }));
  return readSettings(readEnvironment({ RECKONER_HOME: home }));
}

test('is a PNG file, found from RECKONER_HOME and kept as its content', () => {
  writeFileSync(join(home, 'pictures', 'logo.png'), png());
  expect(settingsWith('pictures/logo.png').issuer.logo).toEqual(pngLogo());
  expect(settingsWith(join(home, 'pictures/logo.png')).issuer.logo).toEqual(pngLogo());
});

test('is a JPEG file, whatever its name', () => {
  writeFileSync(join(home, 'logo.png'), jpeg({ width: 320, height: 80 }));
  expect(settingsWith('logo.png').issuer.logo).toMatchObject({ media_type: 'image/jpeg', width: 320, height: 80 });
});

test('is none where the settings name none', () => {
  expect(settingsWith('').issuer.logo).toBeNull();
});

const zeros = (bytes: number) => Buffer.alloc(bytes);

test.each<[what: string, bytes: Buffer, reason: RegExp]>([
  ['an SVG drawing', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), /neither a PNG nor a JPEG/],
  ['an empty file', Buffer.alloc(0), /neither a PNG nor a JPEG/],
  ['a file that is too large', Buffer.concat([png(), zeros(200_000)]), /has \d+ bytes; a logo has at most 200000/],
  ['an image of a few pixels', png({ width: 100, height: 15 }), /has only 100 × 15 pixels/],
  ['an image that is too wide', png({ width: 2001, height: 100 }), /has 2001 × 100 pixels; a logo has at most 2000/],
  ['an image of too many pixels', png({ width: 800, height: 501 }), /has 800 × 501 pixels/],
  ['a PNG image that is cut off', png().subarray(0, 200), /is a truncated PNG image/],
  ['a PNG image that is damaged', damaged(png(), 60), /is a damaged PNG image/],
  ['an interlaced PNG image', png({ interlaced: true }), /interlaced/],
  ['a PNG image of 16 bits a color', png({ depth: 16 }), /16 bits/],
  ['a JPEG image for print', jpeg({ width: 320, height: 80, channels: 4 }), /CMYK/],
  ['a JPEG image that is cut off', jpeg({ width: 320, height: 80 }).subarray(0, 12), /is a truncated JPEG image/],
])('is refused: %s', (_, bytes, reason) => {
  const path = join(home, 'candidate');
  writeFileSync(path, bytes);
  expect(readLogo(path)).toEqual({ problem: expect.stringMatching(reason) });
});

test('that is not there, or a folder, or a link to nothing is refused', () => {
  symlinkSync(join(home, 'nowhere'), join(home, 'link'));
  for (const name of ['nothing.png', 'pictures', 'link']) {
    expect(readLogo(join(home, name))).toEqual({ problem: expect.stringMatching(/cannot be read/) });
  }
});

test('that can be none makes the settings invalid, and they say where and why', () => {
  writeFileSync(join(home, 'notes.txt'), 'no picture');
  try {
    settingsWith('notes.txt');
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    expect((error as Refusal).code).toBe('settings_invalid');
    expect((error as Refusal).message).toMatch(/issuer\.logo.*notes\.txt is neither a PNG nor a JPEG image/);
  }
});

function damaged(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.set([0xff, 0xff, 0xff, 0xff], at);
  return copy;
}

test('is no device, which has no end', () => {
  expect(readLogo('/dev/zero')).toEqual({ problem: '/dev/zero is not a file' });
});
