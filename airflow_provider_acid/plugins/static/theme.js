// Light or dark: as Airflow's UI around this page, else as it was chosen there last, else as the browser prefers.

const preference = window.matchMedia("(prefers-color-scheme: dark)");

function frameIsDark() {
  try {
    if (window.parent === window) return null;
    const root = window.parent.document.documentElement;
    if (root.classList.contains("dark")) return true;
    return root.classList.contains("light") ? false : null;
  } catch {
    return null;
  }
}

function chosenIsDark() {
  try {
    const chosen = window.localStorage.getItem("theme");
    return chosen === "dark" ? true : chosen === "light" ? false : null;
  } catch {
    return null;
  }
}

function apply() {
  const dark = frameIsDark() ?? chosenIsDark() ?? preference.matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export function followTheme() {
  apply();
  preference.addEventListener("change", apply);
  window.addEventListener("storage", apply);
  try {
    if (window.parent !== window) {
      const root = window.parent.document.documentElement;
      new MutationObserver(apply).observe(root, { attributeFilter: ["class"] });
    }
  } catch {
    // Framed by another origin, which the server's policy forbids anyway.
  }
}
