import { Section } from '#config/settings';
import { querying } from '#database/transaction';

/** The sections that were adopted, each as adopted last, and what the file stated then. */
export const readAdopted = querying<{ section: Section; value: unknown; file: unknown }, Record<never, never>>(
  'SELECT section, value, file FROM settings_in_force',
);
