/** CSV for exports (RFC 4180), safe to open in a spreadsheet. */
import { stringify } from 'csv-stringify/sync';

export const csvLine = (cells: readonly string[]) => stringify([[...cells]]);
