/** Puts settings in force, as the action does. */
import type { Section, Settings } from '../../src/config/settings.ts';
import { adoptSection, settingsInForce } from '../../src/people/settings-in-force.ts';
import type { World } from './world.ts';

export async function adopt(world: World, section: Section, value: unknown): Promise<void> {
  await world.database.transaction((tx) => adoptSection(tx, world, { section, value }));
  await readAgain(world);
}

/** The settings of the next command, with what the files state now. */
export async function readAgain(world: World, file: Partial<Settings> = {}): Promise<void> {
  const { sections, ...settings } = { ...world.settings, ...file };
  const stated = { ...sections?.file, ...file };
  world.settings = await settingsInForce(world.database, { ...settings, sections: { adopted: [], file: stated } });
}
