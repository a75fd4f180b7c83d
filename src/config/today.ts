import { Environment } from './environment.ts';
import { Settings } from './settings.ts';

/** Today in the issuer's time zone, `YYYY-MM-DD`. */
export function todayOf(context: Readonly<{ environment: Environment; settings: Settings }>) {
  return context.environment.now().setZone(context.settings.time_zone).toFormat('yyyy-MM-dd');
}

/** The context with a stopped clock, so that what an instant decides and what it dates agree. */
export function atOneInstant<Context extends { readonly environment: Environment }>(context: Context): Context {
  const now = context.environment.now();
  return { ...context, environment: { ...context.environment, now: () => now } };
}
