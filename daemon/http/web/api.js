// Requests to the daemon: GET /api/TOPIC answers with the payload that docs/protocol.md describes, or with an error
// {errno, text}. A daemon that requires a token answers 401; the tab keeps the token until it is closed.

// A proxy may have several daemons at one origin, each below a path of its own.
const TOKEN_KEY = `resourced-token ${globalThis.location?.pathname ?? ""}`;

export const setToken = (token) => sessionStorage.setItem(TOKEN_KEY, token);

export class ApiError extends Error {
  constructor(status, errno, text) {
    super(text);
    this.status = status;
    this.errno = errno;
  }
}

const errorOf = async (response) => {
  const body = await response.json().catch(() => ({}));
  return new ApiError(response.status, body.errno ?? 0, body.text ?? `the daemon answered ${response.status}`);
};

/**
 * Returns the response of GET /api/TOPIC with these request keys. Throws ApiError, with status 0 without a connection.
 */
export const open = async (topic, params = {}, signal = undefined) => {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== undefined)).toString();
  const token = sessionStorage.getItem(TOKEN_KEY);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(`api/${topic}${query ? `?${query}` : ""}`, { headers, signal }).catch((error) => {
    throw error.name === "AbortError" ? error : new ApiError(0, 0, "no connection to the daemon");
  });
  if (!response.ok) throw await errorOf(response);
  return response;
};

/** Returns the payload of the response of open(). */
export const get = async (topic, params, signal) => (await open(topic, params, signal)).json();
