// Runs before the first paint, so that a chosen theme does not flash in the other one's colours.
const chosen = localStorage.getItem("theme");
document.documentElement.dataset["theme"] = chosen === "light" || chosen === "dark" ? chosen : "auto";
export {};
