import type { Section } from '../config/settings.ts';
import { querying } from '../database/transaction.ts';

/** The sections that were adopted, each as adopted last. */
export const readAdopted = querying<{ section: Section; value: unknown }, Record<never, never>>(
  'SELECT section, value FROM settings_in_force',
);
