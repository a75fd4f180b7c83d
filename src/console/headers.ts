/** The headers of all signed-in and sign-in pages: content only from this server, and no frames. */
export const PAGE_HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    ...['script-src', 'style-src', 'font-src', 'img-src', 'connect-src', 'form-action', 'frame-src'].map(
      (kind) => `${kind} 'self'`,
    ),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  // The path can contain a secret. `no-referrer` would also hide a form's origin, which the server checks.
  'Referrer-Policy': 'strict-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'X-Robots-Tag': 'noindex, nofollow',
};
