import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Runs a main class under a URLClassLoader, which Hive 3 takes every class loader for.
 *
 * <p>Usage: Launch CLASSPATH MAIN ARGUMENT...
 */
public final class Launch {
  public static void main(String[] arguments) throws Throwable {
    List<URL> places = new ArrayList<>();
    for (String place : arguments[0].split(File.pathSeparator)) {
      places.add(new File(place).toURI().toURL());
    }
    System.setProperty("java.class.path", arguments[0]);
    URLClassLoader loader =
        new URLClassLoader(places.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
    Thread.currentThread().setContextClassLoader(loader);
    try {
      Class.forName(arguments[1], true, loader)
          .getMethod("main", String[].class)
          .invoke(null, (Object) Arrays.copyOfRange(arguments, 2, arguments.length));
    } catch (InvocationTargetException problem) {
      throw problem.getCause();
    }
  }
}
