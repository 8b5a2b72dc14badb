// Charts are as wide as their box, also when the window changes.
import type uPlot from "uplot";

// follow keeps a chart as wide as its box; what it returns ends that, and the chart.
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
