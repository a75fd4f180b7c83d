/** Checkout Sessions of the stand-in. They are made by customers who open a payment link. */
import { found, page, type Route, type State, type StripeObject, StripeRefusal } from './state.ts';

export const checkoutSessionRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: /^\/v1\/checkout\/sessions$/,
    request: 'checkout_session_list',
    act: ({ state, params }) => {
      const wanted = sessions(state).filter((session) =>
        ['payment_link', 'status'].every((field) => params[field] === undefined || params[field] === session[field]),
      );
      return page(wanted, params, '/v1/checkout/sessions');
    },
  },
  {
    method: 'GET',
    path: /^\/v1\/checkout\/sessions\/(\w+)$/,
    request: 'checkout_session_retrieve',
    act: ({ state, id }) => {
      sessions(state);
      return found(state.sessions, id, 'checkout_session');
    },
  },
  {
    method: 'POST',
    path: /^\/v1\/checkout\/sessions\/(\w+)\/expire$/,
    request: 'checkout_session_expire',
    act: ({ state, id }) => {
      sessions(state);
      const session = found(state.sessions, id, 'checkout_session');
      if (session['status'] !== 'open') {
        throw new StripeRefusal(400, 'Only Checkout Sessions with a status in ["open"] can be expired.');
      }
      session['status'] = 'expired';
      return session;
    },
  },
];

/** All sessions; those that lived for a day are expired by now. */
function sessions(state: State): StripeObject[] {
  const seconds = state.now().getTime() / 1000;
  for (const session of state.sessions.values()) {
    if (session['status'] === 'open' && Number(session['expires_at']) <= seconds) session['status'] = 'expired';
  }
  return [...state.sessions.values()];
}
