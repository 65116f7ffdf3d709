"use strict";
(function () {
  // Only the filter and the copy buttons need this script.
  var groups = Array.prototype.slice.call(document.querySelectorAll(".group"));
  var form = document.querySelector(".filter");
  var texts = null;
  var timer = 0;

  function apply() {
    var wanted = document.getElementById("f-text").value.trim().toLowerCase();
    var cause = document.getElementById("f-cause").value;
    var level = document.getElementById("f-level").value;
    if (wanted && !texts) {
      texts = groups.map(function (g) { return g.textContent.toLowerCase(); });
    }
    var shown = 0;
    groups.forEach(function (g, i) {
      var fits = (!cause || g.dataset.cause === cause) &&
        (!level || g.dataset.level.split("|").indexOf(level) >= 0) &&
        (!wanted || texts[i].indexOf(wanted) >= 0);
      g.hidden = !fits;
      if (fits) { shown += 1; }
    });
    document.getElementById("f-count").textContent =
      shown === groups.length ? "" : shown + " of " + groups.length + " groups";
  }

  if (form) {
    form.hidden = false;
    form.addEventListener("submit", function (e) { e.preventDefault(); apply(); });
    form.addEventListener("input", function () {
      clearTimeout(timer);
      timer = setTimeout(apply, 120);
    });
  }

  function copy(pre) {
    if (navigator.clipboard && navigator.clipboard.writeText) {
      return navigator.clipboard.writeText(pre.textContent);
    }
    var range = document.createRange();
    range.selectNodeContents(pre);
    var selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return document.execCommand("copy") ? Promise.resolve() : Promise.reject();
  }

  document.querySelectorAll(".copy").forEach(function (b) { b.hidden = false; });
  document.addEventListener("click", function (e) {
    var button = e.target.closest && e.target.closest(".copy");
    if (!button) { return; }
    copy(button.parentNode.querySelector("pre")).then(
      function () { button.textContent = "Copied"; },
      function () { button.textContent = "Press Ctrl-C"; }
    ).then(function () {
      setTimeout(function () { button.textContent = "Copy"; }, 1500);
    });
  });
})();
