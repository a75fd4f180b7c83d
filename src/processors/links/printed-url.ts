/**
 * The setting `printed_url`: a document prints the URL of our own page, with the provider behind it, or the provider's
 * URL.
 */
import { z } from 'zod';

export const printedUrl = z.enum(['page', 'provider']).default('page');
