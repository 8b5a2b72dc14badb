import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.TreeMap;

/** Answers with what it was asked for, sorted. */
public class Hello extends HttpServlet {
    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
        TreeMap<String, String> values = new TreeMap<>();
        request.getParameterMap().forEach((name, texts) -> values.put(name, String.join(",", texts)));
        response.setContentType("text/plain");
        response.getWriter().println("hello " + values);
    }
}
