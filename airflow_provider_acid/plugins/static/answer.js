// A view of one answer of the page's own application: waited for, and shown unless another view is asked for by then.

import { get } from "./api.js";
import { failure, loading, show } from "./dom.js";

export async function showAnswer(parent, path, { metastore, stale, redraw }, draw) {
  show(parent, loading());
  let answer;
  try {
    answer = await get(path, { metastore });
  } catch (error) {
    return stale() || show(parent, failure(error, redraw));
  }
  return stale() || show(parent, draw(answer));
}
