/**
 * The setting `printed_url`: whether a document prints the URL of our own page, which leads to the provider, or the
 * provider's URL.
 */
import { z } from 'zod';

export const printedUrl = z.enum(['page', 'provider']).default('page');
