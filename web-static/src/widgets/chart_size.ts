// Keeps charts as wide as the element that contains them.
import type uPlot from "uplot";

// Resizes the chart whenever the width of `box` changes. The returned function stops that and
// destroys the chart.
export function follow(chart: uPlot, box: HTMLElement): () => void {
    const observer = new ResizeObserver(() => {
        if (box.clientWidth > 0 && box.clientWidth !== chart.width) {
            chart.setSize({ width: box.clientWidth, height: chart.height });
        }
    });
    observer.observe(box);
    return () => {
        observer.disconnect();
        chart.destroy();
    };
}
